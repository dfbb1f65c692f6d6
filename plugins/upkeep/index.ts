import { defineCall, definePlugin, requireOwnAccount, z } from 'dealgate/plugin'

/** A certificate that the server was given. */
export interface GivenCertificate {
  /** Its option, without dashes before it. */
  readonly option: 'tls-cert' | 'gateway-cert'
  /** Number of the certificate among those of that option, from 1. */
  readonly number: number
  /** End of its validity, ms since 1970. */
  readonly until: number
}

/** What reads, at the moment, what an operator must renew. */
export interface Upkeep {
  /** When the last backup was taken, ms since 1970; undefined for none. */
  lastBackup(): number | undefined
  /** The certificates in use. */
  certificates(): readonly GivenCertificate[]
}

/** For a program that has neither backups nor certificates. */
const NOTHING: Upkeep = { lastBackup: () => undefined, certificates: () => [] }

/** Tells what an operator must renew in time. */
export default definePlugin({
  name: 'upkeep',
  standard: true,
  summary: 'Tells what an operator must renew in time: backups and certificates.',
  options: z.object({
    reads: z
      .custom<Upkeep>(
        (value) => [Object(value).lastBackup, Object(value).certificates].every((read) => typeof read === 'function'),
        'must be an Upkeep',
      )
      .optional()
      .describe('What reads the times, for programs. The command line gives its own.'),
  }),
  create: ({ reads = NOTHING }) => ({ operations: [getUpkeep(reads)] }),
})

function getUpkeep({ lastBackup, certificates }: Upkeep) {
  return defineCall({
    name: 'GetUpkeep',
    source: 'docs/observability.md#upkeep',
    summary: 'Returns when the last backup was taken, and until when the certificates of the server are valid.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/upkeep/v1' },
    result: z.object({
      LastBackup: z.iso.datetime().optional().describe('Of the data folder; absent before the first one.'),
      Certificates: z
        .array(
          z.object({
            Option: z.enum(['tls-cert', 'gateway-cert']),
            Number: z.int().describe('Its place among those of the option, from 1.'),
            ValidUntil: z.iso.datetime(),
          }),
        )
        .meta({ element: 'Certificate' }),
    }),
    async answer(_, { caller }) {
      requireOwnAccount(caller)
      const taken = lastBackup()
      return {
        ...(taken !== undefined && { LastBackup: new Date(taken).toISOString() }),
        Certificates: certificates().map(({ option, number, until }) => ({
          Option: option,
          Number: number,
          ValidUntil: new Date(until).toISOString(),
        })),
      }
    },
  })
}
