export { type VirtualClock, virtualClock } from '../../src/simulation/virtual-clock.ts';
