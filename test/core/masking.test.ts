import { describe, expect, test } from 'vitest';
import { maskerOf, wordMaskerOf } from '../../src/core/hidden-texts.ts';

const secret = 's3cr3t-"canary"/+?ü';
const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('src/core/hidden-texts.ts', () => {
  test.each([
    ['in plain text', secret],
    ['in JSON', JSON.stringify({ token: secret })],
    ['in a URL', `https://x.test/?token=${encodeURIComponent(secret)}`],
    ['in Base64', `Basic ${base64(secret)}`],
    ['in Base64 after a name of one byte', `Basic ${base64(`a:${secret}`)}`],
    ['in Base64 after a name of two bytes', `Basic ${base64(`ab:${secret}`)}`],
    ['in Base64 after a name of three bytes', `Basic ${base64(`abc:${secret}`)}`],
    ['in Base64 inside of a longer text', base64(`x-access-token:${secret}@git.example.com`)],
    ['in the Base64 of URLs', Buffer.from(`me:${secret}`).toString('base64url')],
  ])('a secret %s is masked', (_, text) => {
    const masked = maskerOf([{ value: secret, shown: '***' }])(`before ${text} after`);
    expect(masked).toMatch(/^before .*\*\*\*.* after$/);
    for (const word of masked.split(/[^\w+/-]+/)) {
      for (const offset of [0, 1, 2, 3]) {
        expect(Buffer.from(word.slice(offset), 'base64').toString('latin1')).not.toContain('canary');
      }
    }
    expect(masked).not.toContain('canary');
  });

  test('other text stays unchanged, and a secret that is too short masks nothing', () => {
    expect(maskerOf([{ value: secret, shown: '***' }])('nothing of it')).toBe('nothing of it');
    expect(maskerOf(['ip', ''].map((value) => ({ value, shown: '***' })))('an ip')).toBe('an ip');
  });

  test('a secret that is too short is masked in a sentence as a whole word', () => {
    const masked = wordMaskerOf([
      { value: '22', shown: '***' },
      { value: 'dev', shown: '***' },
    ]);
    expect(masked('port 22 of "dev" (22), 2222, device')).toBe('port *** of "***" (***), 2222, device');
  });
});
