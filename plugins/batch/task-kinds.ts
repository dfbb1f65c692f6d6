import { createHash } from 'node:crypto'
import { type OwnRequest, type OwnTerms, S3Error, xml } from 'dealgate/plugin'
import { verifyContent } from './checksum-task.js'
import { makeDeal, quoteDeal, renewalTerms, renewDeal } from './deal-tasks.js'
import { tagsOf } from './filter.js'
import type { BatchOperation, BatchOrder, FilterSource, Row, TagPair } from './order.js'
import { endOf, textOf } from './replies.js'
import { type Estimate, type Outcome, on, requireCurrent, type Send, type Task, withJson } from './task.js'

/** How to carry out an operation on one object. All throw S3Error for a task that fails. */
export interface TaskKind {
  run(task: Task, send: Send, signal: AbortSignal): Promise<Outcome>
  /** What `run` would cost. Changes nothing. */
  estimate(row: Row, send: Send): Promise<Estimate>
  /** `estimate` tells a price. */
  readonly spends: boolean
  /** Tasks of a job at the same time. */
  readonly concurrency: number
}

const CONCURRENCY = 8

/** Deals take seconds each, and reading an object as long as it has bytes. */
const SLOW_CONCURRENCY = 4

/** Attempts to change tags that clients change meanwhile. */
const TAG_TRIES = 5

/** @param ofPlugin whether a plugin implements a storage class: to store objects in it may cost money */
export function taskKind(
  { operation, filter }: Pick<BatchOrder, 'operation' | 'filter'>,
  ofPlugin: (storageClass: string) => boolean = () => false,
): TaskKind {
  const kind = { estimate: sizeOf, spends: false, concurrency: CONCURRENCY } as const
  switch (operation.name) {
    case 'Delete':
      return {
        ...kind,
        run: (task, send) => deleteObject(task, operation, filter, send),
      }
    case 'Copy':
      return { ...kind, run: (task, send) => copyObject(task, operation, send) }
    case 'Archive':
      return {
        ...kind,
        ...(ofPlugin(operation.storageClass) && {
          spends: true,
          estimate: (row, send) => quoteDeal(row, { StorageClass: operation.storageClass }, send),
        }),
        run: (task, send) => archiveObject(task, operation.storageClass, send),
      }
    case 'Encrypt':
      return {
        ...kind,
        run: ({ row }, send) => encryptObject(row, send),
      }
    case 'Rewrap':
      return {
        ...kind,
        run: ({ row }, send) => rewrapObject(row, send),
      }
    case 'Tag':
      return { ...kind, run: ({ row }, send) => tagObject(row, operation, send) }
    case 'Untag':
      return { ...kind, run: ({ row }, send) => untagObject(row, operation, send) }
    case 'Acl':
      return {
        ...kind,
        run: ({ row }, send) => simply(send, { ...on(row, { acl: '' }), method: 'PUT', headers: operation.headers }),
      }
    case 'Restore':
      return { ...kind, run: (task, send) => restoreObject(task, operation, send) }
    case 'Retain':
      return { ...kind, run: ({ row }, send) => simply(send, retention(row, operation)) }
    case 'LegalHold':
      return {
        ...kind,
        run: ({ row }, send) =>
          simply(send, putXml(row, 'legal-hold', xml.document('LegalHold', xml.element('Status', operation.status)))),
      }
    case 'Checksum':
      return {
        ...kind,
        concurrency: SLOW_CONCURRENCY,
        run: ({ row }, send) => verifyContent(row, operation.algorithm, send),
      }
    case 'Deal':
      return {
        ...{ spends: true, concurrency: SLOW_CONCURRENCY },
        estimate: (row, send) => quoteDeal(row, operation.terms, send),
        run: (task, send, signal) => makeDeal(task, operation.terms, send, signal),
      }
    case 'Renew':
      return {
        ...{ spends: true, concurrency: SLOW_CONCURRENCY },
        estimate: async (row, send) => quoteDeal(row, await renewalTerms(row, operation.terms, send), send),
        run: (task, send, signal) => renewDeal(task, operation.terms, send, signal),
      }
  }
}

async function simply(send: Send, request: OwnRequest): Promise<Outcome> {
  const reply = await send(request)
  await endOf(reply)
  return { status: reply.status }
}

async function sizeOf(row: Row, send: Send): Promise<Estimate> {
  const reply = await send({ ...on(row), method: 'HEAD' })
  await endOf(reply)
  return { bytes: Number(reply.headers['content-length'] ?? 0) }
}

/**
 * Deletes once: after an attempt whose outcome is open, another delete marker could follow the first, and an object
 * that a client has put since stays. Clients may have replaced the object since it was listed, or have removed the
 * versions that were newer.
 */
async function deleteObject(
  { row, triedSince }: Task,
  { bypassGovernance }: BatchOperation & { name: 'Delete' },
  filter: FilterSource | undefined,
  send: Send,
): Promise<Outcome> {
  const own: OwnTerms = {
    ...(filter?.versions === 'Noncurrent' && { noncurrent: true }),
    ...(filter?.createdBefore !== undefined && { storedBefore: filter.createdBefore }),
  }
  const headers: Record<string, string> = bypassGovernance ? { 'x-amz-bypass-governance-retention': 'true' } : {}
  if (triedSince !== undefined && row[2] === undefined) {
    const present = await found(row, send, (cause) => {
      const message = 'An earlier attempt may have deleted the object: repeating it takes a key pair that may read.'
      throw new S3Error('AccessDenied', { message, cause })
    })
    if (!present) return { status: 204 }
    // S3 tells whole seconds.
    const second = Math.floor(triedSince / 1000) * 1000
    const modified = Date.parse(String(present['last-modified']))
    if (modified > second) return { status: 204, message: 'the object there was put since' }
    if (modified === second)
      throw new S3Error('OperationAborted', {
        message: 'The object was put in the second of the first attempt, before or after it: it is left as it is.',
      })
    headers['if-match'] = String(present.etag)
    headers['x-amz-if-match-last-modified-time'] = String(present['last-modified'])
  }
  return simply(send, { ...on(row), method: 'DELETE', headers, own })
}

/**
 * The headers of an object; undefined where there is none.
 * @param hidden called where the key pair may not read it
 */
async function found(row: Row, send: Send, hidden?: (cause: S3Error) => undefined) {
  try {
    const reply = await send({ ...on(row), method: 'HEAD' })
    await endOf(reply)
    return reply.headers
  } catch (error) {
    if (error instanceof S3Error && (error.code === 'NoSuchKey' || error.code === 'NoSuchVersion')) return undefined
    if (error instanceof S3Error && error.code === 'AccessDenied' && hidden) return hidden(error)
    throw error
  }
}

/**
 * Copies once: the write of an attempt is known by its id. After an attempt whose outcome is open, an object that a
 * client has put since stays, unless it is the source, too.
 */
async function copyObject(
  { row, token, triedSince }: Task,
  { targetBucket, targetPrefix, headers }: BatchOperation & { name: 'Copy' },
  send: Send,
): Promise<Outcome> {
  const target: Row = [targetBucket, `${targetPrefix}${row[1]}`]
  const copy = { ...copyOf(row, target, headers), own: { writeId: token } }
  const isItself = row[2] === undefined && row[0] === target[0] && row[1] === target[1]
  if (triedSince === undefined || isItself) return simply(send, copy)
  // An object that the caller may not see is not replaced.
  const present = await found(target, send, () => undefined)
  const old = present && Date.parse(String(present['last-modified'])) < triedSince - 1000
  const condition: Record<string, string> = old ? { 'if-match': String(present.etag) } : { 'if-none-match': '*' }
  try {
    return await simply(send, { ...copy, headers: { ...copy.headers, ...condition } })
  } catch (error) {
    if (!(error instanceof S3Error) || error.code !== 'PreconditionFailed') throw error
    throw new S3Error('OperationAborted', {
      message:
        'Another write to the target came at or after the first attempt, which may have copied; or the key pair may not read it. It is left as it is.',
    })
  }
}

function copyOf([bucket, key, versionId]: Row, [toBucket, toKey]: Row, headers: Readonly<Record<string, string>>) {
  const version = versionId === undefined ? '' : `?versionId=${encodeURIComponent(versionId)}`
  const source = `/${bucket}/${encodeURIComponent(key)}${version}`
  return {
    method: 'PUT',
    ...{ bucket: toBucket, key: toKey, headers: { ...headers, 'x-amz-copy-source': source } },
  } as const
}

/** The copy of an object onto itself that changes how it is stored, and nothing else. */
function ontoItself(row: Row, headers: Readonly<Record<string, string>>): OwnRequest {
  requireCurrent(row)
  return copyOf(row, row, headers)
}

async function archiveObject({ row, token, triedSince }: Task, storageClass: string, send: Send): Promise<Outcome> {
  const before = triedSince === undefined ? undefined : await found(row, send)
  if (before?.['x-amz-storage-class'] === storageClass) return { status: 200 }
  return simply(send, { ...ontoItself(row, { 'x-amz-storage-class': storageClass }), own: { writeId: token } })
}

/** Leaves objects alone that are encrypted already. */
async function encryptObject(row: Row, send: Send): Promise<Outcome> {
  const before = await found(row, send)
  if (before?.['x-amz-server-side-encryption'] !== undefined) return { status: 200, message: 'already encrypted' }
  return simply(send, ontoItself(row, { 'x-amz-server-side-encryption': 'AES256' }))
}

async function rewrapObject(row: Row, send: Send): Promise<Outcome> {
  requireCurrent(row)
  const reply = await send(withJson({ ...on(row, { 'x-encryption': '' }), method: 'POST' }, {}))
  const { Outcome } = JSON.parse(await textOf(reply)) as { readonly Outcome: string }
  return { status: reply.status, message: Outcome }
}

function putXml(
  row: Row,
  subresource: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): OwnRequest {
  const md5 = createHash('md5').update(body).digest('base64')
  return { ...on(row, { [subresource]: '' }), method: 'PUT', headers: { ...headers, 'content-md5': md5 }, body }
}

function taggingDocument(tags: readonly TagPair[]): string {
  const set = tags.map(({ key, value }) => `<Tag>${xml.element('Key', key)}${xml.element('Value', value)}</Tag>`)
  return xml.document('Tagging', `<TagSet>${set.join('')}</TagSet>`)
}

async function tagObject(row: Row, { tags, replace }: BatchOperation & { name: 'Tag' }, send: Send): Promise<Outcome> {
  if (replace) return simply(send, putXml(row, 'tagging', taggingDocument(tags)))
  return whileTagsChange(row, send, (before, own) => {
    const kept = before.filter(({ key }) => !tags.some((tag) => tag.key === key))
    return simply(send, { ...putXml(row, 'tagging', taggingDocument([...kept, ...tags])), own })
  })
}

async function untagObject(row: Row, { keys }: BatchOperation & { name: 'Untag' }, send: Send): Promise<Outcome> {
  const all = { ...on(row, { tagging: '' }), method: 'DELETE' } as const
  if (!keys) return simply(send, all)
  return whileTagsChange(row, send, async (before, own) => {
    const kept = before.filter(({ key }) => !keys.includes(key))
    if (kept.length === before.length) return { status: 200 }
    return simply(send, { ...(kept.length > 0 ? putXml(row, 'tagging', taggingDocument(kept)) : all), own })
  })
}

/** Repeats a change of tags that clients change meanwhile, a few times. */
async function whileTagsChange(
  row: Row,
  send: Send,
  change: (before: readonly TagPair[], own: OwnTerms) => Promise<Outcome>,
): Promise<Outcome> {
  for (let tries = 1; ; tries++) {
    const before = await tagsOf(send, row[0], row[1], on(row).query)
    try {
      return await change(before, { tags: before })
    } catch (error) {
      if (!(error instanceof S3Error) || error.code !== 'PreconditionFailed' || tries === TAG_TRIES) throw error
    }
  }
}

/** A task succeeds when the restore is accepted. */
async function restoreObject(
  { row, triedSince }: Task,
  { days, tier }: BatchOperation & { name: 'Restore' },
  send: Send,
): Promise<Outcome> {
  const parameters =
    tier === undefined ? '' : `<GlacierJobParameters>${xml.element('Tier', tier)}</GlacierJobParameters>`
  const body = xml.document('RestoreRequest', `${xml.element('Days', days)}${parameters}`)
  try {
    return await simply(send, { ...on(row, { restore: '' }), method: 'POST', body })
  } catch (error) {
    const begun = error instanceof S3Error && error.code === 'RestoreAlreadyInProgress'
    if (begun && triedSince !== undefined) return { status: 202 }
    throw error
  }
}

function retention(row: Row, { mode, until, bypassGovernance }: BatchOperation & { name: 'Retain' }): OwnRequest {
  const body = xml.document('Retention', `${xml.element('Mode', mode)}${xml.element('RetainUntilDate', until)}`)
  return putXml(row, 'retention', body, bypassGovernance ? { 'x-amz-bypass-governance-retention': 'true' } : {})
}
