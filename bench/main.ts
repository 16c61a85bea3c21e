import { convergence } from './convergence.ts';
import { printTable } from './table.ts';

printTable([...(await convergence())]);
