import { parentPort } from 'node:worker_threads';
import type { Desired } from '../../core/desired.ts';
import { type Diagnostic, messageOf, SpecError } from '../../core/errors.ts';
import type { Environment, SpecTrust } from '../../spec/environment.ts';
import { loadSpec, type Source } from '../../spec/load.ts';

/** The request to the worker thread. */
export interface SpecRequest {
  readonly sources: readonly Source[];
  readonly environment: Environment;
  readonly trust: SpecTrust;
}

/** The answer of the worker thread: the spec, or the reason why there is none. */
export type SpecAnswer =
  | { readonly desired: Desired }
  | { readonly problem: readonly Diagnostic[]; readonly projectId?: number | undefined }
  | { readonly failure: string };

function answer({ sources, environment, trust }: SpecRequest): SpecAnswer {
  try {
    return { desired: loadSpec(sources, environment, trust) };
  } catch (error) {
    if (error instanceof SpecError) return { problem: error.diagnostics, projectId: error.projectId };
    return { failure: messageOf(error) };
  }
}

parentPort?.on('message', (request: SpecRequest) => parentPort?.postMessage(answer(request)));
// The deadline of the first request begins once everything is loaded.
parentPort?.postMessage('ready');
