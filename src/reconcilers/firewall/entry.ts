import { z } from 'zod';
import type { FirewallRule } from '../../core/resources.ts';

/**
 * A server's firewall, replaced as a whole. Declared fields are compared, rules in their
 * order. If a replacement would lose fields that vdcsync cannot send back, the replacement is blocked.
 */
export type FirewallEntry = {
  readonly enabled?: boolean | undefined;
  readonly policy_in?: string | undefined;
  readonly rules?: readonly FirewallRule[] | undefined;
};

/** Fields of a rule that the document shows. @source API §2 */
export const shownRuleFields = [
  'direction',
  'action',
  'enabled',
  'protocol',
  'destination_port',
  'description',
];

export const firewallSchema = z
  .strictObject({
    enabled: z
      .boolean()
      .optional()
      .describe(
        'Whether the firewall filters traffic. true requires a public network interface on the server.',
      ),
    policy_in: z
      .string()
      .trim()
      .min(1)
      .optional()
      .meta({
        description:
          "Action for traffic that no rule matches. The API's document shows `drop` and `accept`, but no complete list, so any other value is sent unchanged.",
        examples: ['drop', 'accept'],
      }),
    rules: z
      .array(
        z.looseObject({
          direction: z
            .string()
            .optional()
            .meta({ description: 'Direction of the traffic, such as in.', examples: ['in'] }),
          action: z
            .string()
            .optional()
            .meta({ description: 'accept or drop.', examples: ['accept', 'drop'] }),
          enabled: z.boolean().optional().describe('Whether the rule is used.'),
          protocol: z
            .string()
            .optional()
            .meta({ description: 'The protocol, such as tcp.', examples: ['tcp'] }),
          destination_port: z
            .string()
            .optional()
            .meta({ description: 'A port, or several with commas, as text.', examples: ['80,443'] }),
          description: z.string().optional().describe('A note.'),
        }),
      )
      .optional()
      .describe('The first rule that matches decides. vdcsync sends unknown fields of a rule unchanged.'),
  })
  .describe('The firewall of the server. Without this field, vdcsync does not change the firewall.');
