import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { folderWith } from '../cli/run.ts';
import { complaints } from '../support/schema-store.ts';
import { program } from './support.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const example = (name: string) => readFileSync(join(root, 'examples', name), 'utf8');
const compose = 'raw.githubusercontent.com/compose-spec/compose-spec/master/schema/compose-spec.json';

describe('examples: published schemas', () => {
  test('a compose file matches its schema', () => {
    const document = parse(example('compose/compose.yaml'));
    expect(complaints(compose, document, '2019-09')).toEqual([]);
    const { vdcsync } = document.services;
    const wrong = { ...document, services: { vdcsync: { ...vdcsync, stop_grace: '15s' } } };
    expect(complaints(compose, wrong, '2019-09').join()).toContain('additional properties');
  });

  test('a GitHub Actions workflow matches its schema', () => {
    const workflow = parse(example('github-actions/vdcsync.yml'));
    expect(complaints('github-workflow.json', workflow)).toEqual([]);
    const { plan, apply } = workflow.jobs;
    const wrong = { ...workflow, jobs: { plan, apply: { ...apply, 'timeout-minute': 60 } } };
    expect(complaints('github-workflow.json', wrong)).not.toEqual([]);
  });

  const manifests = readdirSync(join(root, 'examples/kubernetes')).filter(
    (name) => name !== 'kustomization.yaml',
  );
  test.each(manifests)('a Kubernetes manifest matches its schema: %s', (name) => {
    const documents = parseAllDocuments(example(`kubernetes/${name}`)).map((each) => each.toJS());
    expect(typeErrors(documents)).toEqual([]);
    const wrong = JSON.parse(JSON.stringify(documents));
    const deployment = wrong.find(({ kind }: { kind: string }) => kind === 'Deployment');
    deployment.spec.replicas = 'two';
    deployment.spec.template.spec.containers[0].liveness = {};
    const found = typeErrors(wrong).join('\n');
    expect(found).toMatch(/'string' is not assignable to type 'number'/);
    expect(found).toMatch(/'"liveness"' does not exist in type 'Container'/);
  });

  test.each(['kubernetes', 'kubernetes-production'])('Kustomize: %s names only existing files', (folder) => {
    const path = (name: string) => join(root, 'examples', folder, name);
    const kustomization = parse(readFileSync(path('kustomization.yaml'), 'utf8')) as Kustomization;
    expect(complaints('kustomization.json', kustomization)).toEqual([]);
    expect(complaints('kustomization.json', { ...kustomization, resource: [] })).not.toEqual([]);
    const files = [
      ...kustomization.resources,
      ...(kustomization.configMapGenerator ?? []).flatMap(({ files }) => files),
    ];
    expect(files.filter((name) => !existsSync(path(name)))).toEqual([]);
    // A resource outside the folder has to be a folder with a kustomization of its own.
    for (const name of kustomization.resources.filter((each) => each.startsWith('..')))
      expect(existsSync(path(join(name, 'kustomization.yaml')))).toBe(true);

    const base = parseAllDocuments(example('kubernetes/vdcsync.yaml')).map((each) => each.toJS());
    const [container] = base.find(({ kind }) => kind === 'Deployment').spec.template.spec.containers;
    for (const { name } of kustomization.images ?? []) expect(container.image).toMatch(`${name}:`);
    const volumes = base.flatMap((each) => each.spec?.template?.spec?.volumes ?? []);
    for (const { name, files } of kustomization.configMapGenerator ?? []) {
      const volume = volumes.find(({ configMap }) => configMap?.name === name);
      const mount = container.volumeMounts.find((each: { name: string }) => each.name === volume.name);
      for (const file of files) expect(container.args).toContain(`${mount.mountPath}/${file}`);
    }
    for (const { patch } of kustomization.patches ?? []) {
      const wanted = parse(patch);
      const target = base.find(
        ({ kind, metadata }) => kind === wanted.kind && metadata.name === wanted.metadata.name,
      );
      const [patched] = wanted.spec.template.spec.containers;
      expect([target?.apiVersion, patched.name]).toEqual([wanted.apiVersion, container.name]);
      const names = container.env.map((each: { name: string }) => each.name);
      for (const { name } of patched.env) expect(names).toContain(name);
    }
  });

  test.runIf(existsSync('/usr/bin/systemd-analyze'))(
    'systemd supports every directive of the unit',
    async () => {
      const verify = (unit: string) => {
        const path = join(folderWith({ 'vdcsync.service': unit }), 'vdcsync.service');
        return program('sh', ['-c', `systemd-analyze verify --man=no '${path}' 2>&1`], root);
      };
      const unit = example('systemd/vdcsync.service');
      expect(await verify(unit)).toBe('');
      expect(await verify(unit.replace('RestartSec=', 'RestartSecond='))).toMatch(
        /Unknown key (name )?'RestartSecond'/,
      );
    },
  );
});

interface Kustomization {
  readonly resources: readonly string[];
  readonly images?: readonly { readonly name: string }[];
  readonly configMapGenerator?: readonly { readonly name: string; readonly files: readonly string[] }[];
  readonly patches?: readonly { readonly patch: string }[];
}

const groups: Readonly<Record<string, string>> = {
  v1: 'core/v1',
  'apps/v1': 'apps/v1',
  'networking.k8s.io/v1': 'networking/v1',
  'policy/v1': 'policy/v1',
};

/**
 * What Kubernetes' own types have against manifests: each becomes a literal of its kind's type,
 * so that a field of a wrong type and one that does not exist are errors of the compiler.
 */
const declarations = new Map<string, ts.SourceFile | undefined>();

/** Each file of types is parsed once for all manifests. */
function parsed(name: string, parse: () => ts.SourceFile | undefined): ts.SourceFile | undefined {
  if (!declarations.has(name)) declarations.set(name, parse());
  return declarations.get(name);
}

function typeErrors(documents: readonly { apiVersion: string; kind: string }[]): string[] {
  const code = documents.map((document, index) => {
    const type = `import('kubernetes-types/${groups[document.apiVersion]}').${document.kind}`;
    return `export const manifest${index}: ${type} = ${JSON.stringify(document)};`;
  });
  const file = join(root, 'test/daemon/virtual-manifests.ts');
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    types: [],
    skipLibCheck: true,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
  };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists } = host;
  host.fileExists = (name) => name === file || fileExists(name);
  host.getSourceFile = (name, ...rest) =>
    name === file
      ? ts.createSourceFile(name, code.join('\n'), ts.ScriptTarget.ES2022)
      : parsed(name, () => getSourceFile(name, ...rest));
  return ts
    .getPreEmitDiagnostics(ts.createProgram([file], options, host))
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}
