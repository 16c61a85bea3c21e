import { convergence } from './convergence.ts';
import { exposure } from './exposure.ts';
import { planning } from './planning.ts';
import { startup } from './startup.ts';
import { printTable } from './table.ts';

printTable([
  ...(await convergence()),
  ...(await convergence(2)),
  ...(await convergence(4)),
  ...(await exposure()),
  ...(await planning()),
  ...(await startup()),
]);
