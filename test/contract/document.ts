import { readFileSync } from 'node:fs';
import type { ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { parse } from 'yaml';

/** One operation of the document. `id` is how the suite speaks of it, such as `GET /ips/{id}`. */
export interface DocumentedOperation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly accessLevel: string;
  /** JSON pointer of the operation object. */
  readonly pointer: string;
}

/** A code of the error table. A missing status, or `retryAfter`, is not shown. */
export interface KnownCode {
  readonly code: string;
  readonly status?: number;
  readonly retryAfter?: 'always' | 'never';
}

type Node = { readonly [key: string]: unknown };

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null;

/** `schemas/openapi.yaml`, readable by JSON pointer, with its schemas compiled on first use. */
export class OpenApiDocument {
  readonly operations: readonly DocumentedOperation[];
  readonly knownCodes: readonly KnownCode[];
  private readonly root: Node;
  private readonly ajv: Ajv2020;
  private readonly paths: readonly (readonly [path: string, pattern: RegExp])[];
  private readonly found = new Map<string, unknown>();
  private readonly compiled = new Map<string, ValidateFunction>();

  constructor(text: string) {
    this.root = parse(text) as Node;
    this.ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
    // Its default export is typed as a namespace under nodenext; the function is the namespace itself.
    (addFormats as unknown as (ajv: Ajv2020) => void)(this.ajv);
    this.ajv.addSchema(this.root, 'openapi');
    this.operations = this.collectOperations();
    this.paths = [...new Set(this.operations.map(({ path }) => path))].map((path) => [
      path,
      new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{[^}]+\}/g, '[^/]+')}$`),
    ]);
    this.knownCodes = (this.at('/components/schemas/Problem/x-known-codes') as readonly Node[]).map(
      (entry) => ({
        code: String(entry.code),
        ...(typeof entry.status === 'number' ? { status: entry.status } : {}),
        ...(entry.retry_after === 'always' || entry.retry_after === 'never'
          ? { retryAfter: entry.retry_after }
          : {}),
      }),
    );
  }

  static read(): OpenApiDocument {
    return new OpenApiDocument(readFileSync(new URL('../../schemas/openapi.yaml', import.meta.url), 'utf8'));
  }

  /** The documented path that a concrete path, without base and query, belongs to. */
  pathOf(concrete: string): string | undefined {
    return this.paths.find(([, pattern]) => pattern.test(concrete))?.[0];
  }

  operation(method: string, path: string): DocumentedOperation | undefined {
    return this.operations.find((operation) => operation.method === method && operation.path === path);
  }

  methodsOf(path: string): readonly string[] {
    return this.operations
      .filter((operation) => operation.path === path)
      .map((operation) => operation.method);
  }

  /** Where the response for a status stands, its `$ref` followed; a range such as `2XX` comes second. */
  responsePointer(operation: DocumentedOperation, status: number): string | undefined {
    const responses = `${operation.pointer}/responses`;
    const key = [String(status), `${Math.floor(status / 100)}XX`].find(
      (candidate) => this.find(`${responses}/${candidate}`) !== undefined,
    );
    return key === undefined ? undefined : this.follow(`${responses}/${key}`);
  }

  /** The value at a JSON pointer, which must exist. */
  at(pointer: string): unknown {
    const value = this.find(pointer);
    if (value === undefined) throw new Error(`schemas/openapi.yaml has nothing at ${pointer}`);
    return value;
  }

  find(pointer: string): unknown {
    if (!this.found.has(pointer)) this.found.set(pointer, this.search(pointer));
    return this.found.get(pointer);
  }

  private search(pointer: string): unknown {
    let value: unknown = this.root;
    for (const step of pointer.split('/').slice(1)) {
      if (!isNode(value)) return undefined;
      value = value[step.replaceAll('~1', '/').replaceAll('~0', '~')];
    }
    return value;
  }

  /** The pointer itself, or the one its `$ref` names. */
  follow(pointer: string): string {
    const value = this.at(pointer);
    if (isNode(value) && typeof value.$ref === 'string') return this.follow(value.$ref.slice(1));
    return pointer;
  }

  /** What the schema at `pointer` finds wrong with `value`. */
  complaints(pointer: string, value: unknown): readonly string[] {
    let validate = this.compiled.get(pointer);
    if (validate === undefined) {
      validate = this.ajv.compile({ $ref: `openapi#${encodeURI(pointer)}` });
      this.compiled.set(pointer, validate);
    }
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      (error) => `${error.instancePath || '(whole)'} ${error.message ?? error.keyword}`,
    );
  }

  private collectOperations(): DocumentedOperation[] {
    return Object.entries(this.root.paths as Node).flatMap(([path, item]) =>
      METHODS.filter((method) => isNode(item) && isNode(item[method])).map((method) => {
        const pointer = `/paths/${path.replaceAll('~', '~0').replaceAll('/', '~1')}/${method}`;
        return {
          id: `${method.toUpperCase()} ${path}`,
          method: method.toUpperCase(),
          path,
          accessLevel: String((this.find(pointer) as Node)['x-access-level']),
          pointer,
        };
      }),
    );
  }
}
