import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { printable } from '../../common/log.js'
import { Failure, print } from '../command.js'
import type { Config } from '../config/config.js'
import { callEndpoint, type Endpoint } from '../endpoint-call.js'
import { endpointOf, signerOf } from '../running.js'

interface Flags {
  readonly prefix?: string
  readonly endpointUrl?: string
  readonly profile?: string
}

const Result = z.object({
  Rewrapped: z.number(),
  Current: z.number(),
  Plain: z.number(),
  Skipped: z.number(),
  SkippedObjects: z.array(z.object({ Key: z.string(), Reason: z.string() })),
  EarlierDeals: z.array(z.object({ Key: z.string(), Cid: z.string() })),
})

const Job = z.object({
  JobId: z.string(),
  Status: z.string(),
  FailureReasons: z.array(z.object({ FailureCode: z.string(), FailureReason: z.string() })).catch([]),
  Result: z.unknown(),
})

const POLL_MS = 1000

/** Requests in a row that may fail while a server restarts. */
const MAX_FAILURES = 30

/** `dealgate encryption rewrap <bucket>`: has the running server do it, and waits for the outcome. */
export async function rewrapObjects(config: Config, bucket: string, flags: Flags): Promise<void> {
  const { prefix, endpointUrl, profile } = flags
  if (!/^[a-z0-9.-]{3,63}$/.test(bucket)) throw new Failure(`${printable(bucket)} is not the name of a bucket.`)
  const signer = await signerOf(config, profile)
  const endpoint = { url: endpointOf(config, endpointUrl ?? signer.endpoint), signer }
  const answer = await callEndpoint(endpoint, {
    method: 'POST',
    path: `/${bucket}`,
    query: { 'x-encryption': '' },
    body: prefix === undefined ? {} : { Prefix: prefix },
  })
  const result = Result.parse('Rewrapped' in answer ? answer : await outcome(endpoint, Job.parse(answer).JobId))
  print(config, result, textOf(result))
}

async function outcome(endpoint: Endpoint, id: string): Promise<unknown> {
  process.stderr.write(`The job ${id} goes on if this command ends: dealgate jobs\n`)
  for (let failuresLeft = MAX_FAILURES; ; ) {
    await sleep(POLL_MS)
    const answer = await callEndpoint(endpoint, { method: 'GET', path: `/-/jobs/v1/${id}` }).catch((error) => {
      if (failuresLeft-- <= 0 || error.cause !== undefined) throw error
    })
    if (!answer) continue
    failuresLeft = MAX_FAILURES
    const { Status, FailureReasons, Result } = Job.parse(answer)
    if (Status === 'Complete') return Result
    if (Status !== 'Failed' && Status !== 'Cancelled') continue
    const [failure] = FailureReasons
    throw new Failure(`The job ${id} is ${Status}: ${failure?.FailureReason ?? 'it was cancelled'}`)
  }
}

function textOf(result: z.output<typeof Result>): string {
  const { Rewrapped, Current, Plain, Skipped, SkippedObjects, EarlierDeals } = result
  const lines = [
    `${Rewrapped} objects have new headers, ${Current} had such headers before, ${Plain} are not encrypted, ${Skipped} stay as they are.`,
    ...SkippedObjects.map(({ Key, Reason }) => `${printable(Key)}: ${Reason}`),
    ...EarlierDeals.map(({ Key, Cid }) => `${printable(Key)}: the deal of ${Cid} has the earlier header.`),
    ...(Skipped + EarlierDeals.length > 0 ? ['Keep the earlier keys: they open these.'] : []),
  ]
  return `${lines.join('\n')}\n`
}
