import { z } from 'zod'
import { S3Error } from '../../../common/errors/s3-error.js'
import { defineCall } from '../../plugins/calls/define-call.js'
import { requireOwnAccount } from './operators.js'

/** An option of the command, as operators may see it. */
export interface ShownOption {
  readonly name: string
  readonly group: string
  readonly help: string
  /** Undefined for an option without a value, and for a secret. */
  readonly value: string | undefined
  readonly secret: boolean
  readonly isSet: boolean
  readonly isDefault: boolean
  /** A reload uses a new value. */
  readonly live: boolean
}

/** @param shown those in force; undefined where a program contains the server */
export function listOptions(shown: (() => readonly ShownOption[]) | undefined) {
  return defineCall({
    name: 'ListOptions',
    source: 'docs/running.md#options-in-force',
    summary: 'Lists the options in force, without secrets.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/options/v1' },
    pages: 'Options',
    result: z.object({
      Options: z
        .array(
          z.object({
            Option: z.string(),
            Value: z.string().optional().describe('As JSON. Of an address, scheme and host alone. Absent for secrets.'),
            Secret: z.boolean(),
            IsSet: z.boolean(),
            IsDefault: z.boolean(),
            Live: z.boolean().describe('True when a reload uses a new value, false when a restart is needed.'),
            Group: z.string(),
            Help: z.string(),
          }),
        )
        .meta({ element: 'Entry' }),
    }),
    async answer(_, { caller }) {
      requireOwnAccount(caller)
      if (!shown)
        throw new S3Error('NotImplemented', { message: 'The program that contains this server has the options.' })
      return {
        Options: shown().map(({ name, group, help, value, secret, isSet, isDefault, live }) => ({
          Option: name,
          ...(value !== undefined && { Value: value }),
          Secret: secret,
          IsSet: isSet,
          IsDefault: isDefault,
          Live: live,
          Group: group,
          Help: help,
        })),
      }
    },
  })
}
