import { setTimeout as sleep } from 'node:timers/promises'
import { parseAmount, S3Error } from 'dealgate/plugin'
import type { Row } from './order.js'
import { textOf } from './replies.js'
import { type Estimate, type Outcome, on, requireCurrent, type Send, type Task, withJson } from './task.js'

/** Terms of a deal, as the body of CreateObjectDeal states them. */
type Terms = Readonly<Record<string, string | number | boolean>>

/** How long one request waits for the job of its deal, s. */
const WAIT_SECONDS = 60

/** How long a deal may have an unknown outcome before its task is reported as failed, ms. */
const UNKNOWN_MS = 10 * 60_000

const LOOK_MS = 1000

/**
 * Makes a deal for an object, or finds the one that an earlier attempt has made: the token of the task names its job.
 * @throws S3Error of CreateObjectDeal; OutcomeUnknown for a deal whose outcome its job has still to find out
 */
export async function makeDeal(task: Task, terms: Terms, send: Send, signal: AbortSignal): Promise<Outcome> {
  requireCurrent(task.row)
  const headers = { 'x-amz-client-token': task.token, prefer: `wait=${WAIT_SECONDS}` }
  const request = withJson({ ...on(task.row, { 'x-deal': '' }), method: 'POST', headers }, terms)
  for (let unknownSince: number | undefined; ; ) {
    signal.throwIfAborted()
    const reply = await send(request)
    const answer = JSON.parse(await textOf(reply)) as DealAnswer
    if (reply.status !== 202) return { status: reply.status, message: answer.Deal?.DealCid ?? answer.JobId ?? '' }
    unknownSince = answer.Status === 'Unknown' ? (unknownSince ?? Date.now()) : undefined
    if (unknownSince !== undefined && Date.now() - unknownSince > UNKNOWN_MS)
      throw new S3Error('OutcomeUnknown', {
        status: 409,
        message: `The job ${answer.JobId} has sent the request for the deal and has to find out its outcome: look there.`,
      })
    await sleep(LOOK_MS, undefined, { signal })
  }
}

interface DealAnswer {
  readonly Deal?: { readonly DealCid?: string }
  readonly JobId?: string
  readonly Status?: string
}

/** Makes a deal on the terms of the newest deal of the object, or on others where `terms` states them. */
export async function renewDeal(task: Task, terms: Terms, send: Send, signal: AbortSignal): Promise<Outcome> {
  return makeDeal(task, await renewalTerms(task.row, terms, send), send, signal)
}

const RENEWED = ['MinerId', 'Price', 'DurationEpochs', 'VerifiedDeal', 'FastRetrieval'] as const

/** Throws NoSuchDeal for an object without deals. */
export async function renewalTerms(row: Row, terms: Terms, send: Send): Promise<Terms> {
  const newest = await newestDeal(row, send)
  const kept = RENEWED.flatMap((name) => (newest[name] === undefined ? [] : [[name, newest[name]] as const]))
  return { ...Object.fromEntries(kept), ...terms }
}

async function newestDeal(
  row: Row,
  send: Send,
): Promise<Partial<Record<(typeof RENEWED)[number], string | number | boolean>>> {
  let newest: object | undefined
  let token: string | undefined
  do {
    const query = { 'x-deal': '', format: 'json', ...(token !== undefined && { 'continuation-token': token }) }
    const reply = await send({ ...on(row, query), method: 'GET' })
    const page = JSON.parse(await textOf(reply)) as DealList
    newest = page.DealEntry.findLast(({ Deal }) => Deal)?.Deal ?? newest
    token = page.NextContinuationToken
  } while (token !== undefined)
  if (newest) return newest
  throw new S3Error('NoSuchDeal', { message: 'The object has no deal that could be renewed.' })
}

interface DealList {
  readonly DealEntry: readonly { readonly Deal?: object }[]
  readonly NextContinuationToken?: string
}

/** What a deal for the object would cost. */
export async function quoteDeal(row: Row, terms: Terms, send: Send): Promise<Estimate> {
  requireCurrent(row)
  const reply = await send(withJson({ ...on(row, { 'x-deal-quote': '' }), method: 'POST' }, terms))
  const { Bytes, Total } = JSON.parse(await textOf(reply)) as { readonly Bytes: number; readonly Total?: string }
  return { bytes: Bytes, ...(Total !== undefined && { price: parseAmount(Total) ?? 0n }) }
}
