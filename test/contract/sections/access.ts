import { describe, expect } from 'vitest';
import { document, open, reads, test, writes } from '../contract.ts';
import { validWrite } from '../valid-write.ts';

describe('§5 authentication', () => {
  test('§5.1 a request without Authorization: Bearer, or with an unknown token, gets 401 (§5.7)', async ({
    api,
  }) => {
    expect((await api.get('/project', { token: null })).status).toBe(401);
    expect((await api.get('/project', { token: 'no-such-token' })).status).toBe(401);
    expect((await api.post('/ips', {}, { token: null })).status).toBe(401);
    expect((await api.get('/ips')).data).toEqual([]);
  });

  test.each(reads)('§5.4 the read level allows every GET: $id', async (operation) => {
    const api = await open();
    const path = await api.existing(operation.path);
    expect((await api.get(path, { token: api.tokens.read })).status).toBe(200);
  });

  test.each(
    writes,
  )('§5.5 a request beyond the token’s level is refused with 403 insufficient_scope: $id', async (operation) => {
    const api = await open();
    const path = await api.existing(operation.path);
    const answer = await api.send(operation.method, path, { token: api.tokens.read });
    expect([answer.status, answer.code]).toEqual([403, 'insufficient_scope']);
  });

  test('§5.6 an operation that the team member may not perform gets 403 insufficient_privileges', async ({
    api,
    server,
  }) => {
    const refused = await api.delete(`/servers/${server.id}`, { token: api.tokens.member });
    expect([refused.status, refused.code]).toEqual([403, 'insufficient_privileges']);
    expect((await api.get(`/servers/${server.id}/firewall`)).status).toBe(200);
    expect((await api.get('/project', { token: api.tokens.member })).status).toBe(200);
    expect((await api.post('/ips', {}, { token: api.tokens.member })).status).toBe(201);
  });

  test('§5.3 revocation takes effect immediately', async ({ api }) => {
    expect((await api.get('/project', { token: api.tokens.read })).status).toBe(200);
    api.emulator.mutate({ do: 'revoke_token', token: api.tokens.read });
    expect((await api.get('/project', { token: api.tokens.read })).status).toBe(401);
    expect((await api.get('/project')).status).toBe(200);
  });

  test('§5.2 the secret of a token is not stored', async ({ api }) => {
    expect((await api.get('/project')).status).toBe(200);
    const memory = JSON.stringify(api.emulator.world);
    for (const secret of Object.values(api.tokens)) expect(memory).not.toContain(secret);
  });

  test('§1.3 SSH keys belong to the account: both projects of the account can use the same key', async ({
    api,
  }) => {
    const body = await api.serverBody({ ssh_keys: [101] });
    expect((await api.post('/servers', body)).status).toBe(202);
    expect((await api.post('/servers', body, { token: api.otherProjectToken })).status).toBe(202);
  });

  test.each(
    document.operations.filter(({ path }) => /^[/](?!server-types).*[{]id[}]/.test(path)),
  )('§1.1 a token belongs to one project: another project’s resource is not found: $id', async (operation) => {
    const api = await open();
    const [path, json] = await validWrite(api, operation);
    const answer = await api.send(operation.method, path, { json, token: api.otherProjectToken });
    expect(answer.status).toBe(404);
  });

  test('§1.1 a token belongs to one project: lists do not show resources of another project', async ({
    api,
  }) => {
    await api.post('/ips', {});
    const token = api.otherProjectToken;
    expect((await api.get('/ips', { token })).data).toEqual([]);
    expect((await api.get('/project', { token })).data.id).not.toBe((await api.get('/project')).data.id);
  });
});

describe.each(['suspended', 'unpaid'] as const)('§1.6 a project that is %s', (standing) => {
  test('still answers reads', async ({ api }) => {
    const paths: string[] = [];
    for (const operation of reads) paths.push(await api.existing(operation.path));
    api.standing(standing);
    for (const path of paths) expect([path, (await api.get(path)).status]).toEqual([path, 200]);
  });

  test('refuses operations that create new spending with 402', async ({ api, server }) => {
    const bodies = [await api.serverBody(), await api.gpuBody()];
    api.standing(standing);
    expect((await api.post('/ips', {})).status).toBe(402);
    for (const body of bodies) expect((await api.post('/servers', body)).status).toBe(402);
    expect((await api.post(`/servers/${server.id}/backups`)).status).toBe(402);
    expect((await api.get('/ips')).data).toEqual([]);
  });

  test('still allows deleting a server and releasing an address', async ({ api }) => {
    const server = await api.server({ public_ipv4: { new: true } });
    const [ip] = (await api.get('/ips')).data;
    api.standing(standing);
    await api.finish(await api.delete(`/servers/${server.id}`));
    expect((await api.delete(`/ips/${ip?.id}`)).status).toBe(200);
  });

  test('still allows removing a network interface and switching scheduled backups off', async () => {
    const api = await open({ undocumented: ['remove_network_interface', 'update_backup_policy'] });
    const server = await api.server();
    const card = await api.attach(server.id, (await api.network('backend')).id);
    api.standing(standing);
    const path = `/v1/servers/${server.id}`;
    // Removing one reduces the bill, so adding one adds to it (A44).
    const network = await api.networkNamed('backend');
    const added = await api.post(`/servers/${server.id}/network-interfaces`, { network_id: network?.id });
    expect(added.status).toBe(402);
    expect((await api.unchecked('PUT', `${path}/backup-policy`, { enabled: true })).status).toBe(402);
    expect((await api.unchecked('PUT', `${path}/backup-policy`, { enabled: false })).status).toBe(200);
    expect((await api.unchecked('DELETE', `${path}/network-interfaces/${card.id}`)).status).toBe(202);
  });
});
