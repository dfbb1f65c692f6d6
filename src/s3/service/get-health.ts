import { z } from 'zod'
import { defineCall } from '../../plugins/calls/define-call.js'
import { checkAll, freeBytes, problemOf } from './ready.js'

/** The checks of `/-/ready` one by one, for callers with a key pair: it answers 200 also if one fails. */
export const getHealth = defineCall({
  name: 'GetHealth',
  source: 'docs/operations.md#health',
  summary:
    'Tells what works and what does not, with reasons: the gateway, the store of records, the data folder, its disk.',
  access: 'signed',
  on: { method: 'GET', resource: 'service', path: '/-/health' },
  ownRules: true,
  result: z.object({
    Status: z.enum(['Ready', 'NotReady', 'Closing']),
    Problem: z.string().optional().describe('Reason why some requests are refused, or soon will be.'),
    Checks: z
      .array(
        z.object({
          Name: z.enum(['gateway', 'state', 'data', 'disk']),
          Works: z.boolean(),
          Milliseconds: z.int(),
          Reason: z.string().optional(),
        }),
      )
      .meta({ element: 'Check' }),
    FreeBytes: z.int().optional().describe('Free bytes on the disk of the data folder.'),
    UptimeSeconds: z.int(),
    Pid: z.int().describe('Id of the process that answers.'),
    Worker: z.int().optional().describe('Its number among the workers, from 1; absent without --workers.'),
  }),
  async answer(_, context) {
    const [checks, free, problem] = await Promise.all([
      checkAll(context),
      freeBytes(context.server.data),
      problemOf(context),
    ])
    const works = checks.every(({ failure }) => !failure)
    return {
      Status: context.server.closing() ? ('Closing' as const) : works ? ('Ready' as const) : ('NotReady' as const),
      ...(problem !== undefined && { Problem: problem }),
      Checks: checks.map(({ name, ms, failure }) => ({
        Name: name,
        Works: !failure,
        Milliseconds: Math.round(ms),
        ...(failure && { Reason: failure.message }),
      })),
      ...(free !== undefined && { FreeBytes: free }),
      UptimeSeconds: Math.round(process.uptime()),
      Pid: process.pid,
      ...(context.server.worker !== undefined && { Worker: context.server.worker }),
    }
  },
})
