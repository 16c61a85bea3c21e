import { convergence } from './convergence.ts';
import { planning } from './planning.ts';
import { startup } from './startup.ts';
import { printTable } from './table.ts';

printTable([...(await convergence()), ...(await planning()), ...(await startup())]);
