import { createHash } from 'node:crypto'
import type { OwnRequest } from '../../api/child-request.js'
import { S3Error } from '../../common/errors/s3-error.js'
import { document, element } from '../../common/xml.js'
import { isHotClass } from '../../plugins/storage-class.js'
import { taggingDocument } from '../tags.js'
import { verifyContent } from './checksum-task.js'
import { makeDeal, quoteDeal, renewalTerms, renewDeal } from './deal-tasks.js'
import { isCurrent, tagsOf } from './filter.js'
import type { BatchOperation, BatchOrder, Row } from './order.js'
import { endOf, textOf } from './replies.js'
import { type Ask, type Done, type Estimate, on, requireCurrent, type Task, withJson } from './task.js'

/** How to carry out an operation on one object. All throw S3Error for a task that fails. */
export interface TaskKind {
  run(task: Task, ask: Ask, signal: AbortSignal): Promise<Done>
  /** What `run` would cost. Changes nothing. */
  estimate(row: Row, ask: Ask): Promise<Estimate>
  /** `estimate` tells a price. */
  readonly spends: boolean
  /** Tasks of a job at the same time. */
  readonly concurrency: number
}

const CONCURRENCY = 8

/** Deals take seconds each, and reading an object as long as it has bytes. */
const SLOW_CONCURRENCY = 4

export function taskKind({ operation, filter }: Pick<BatchOrder, 'operation' | 'filter'>): TaskKind {
  const kind = { estimate: sizeOf, spends: false, concurrency: CONCURRENCY } as const
  switch (operation.name) {
    case 'Delete':
      return {
        ...kind,
        run: async (task, ask) => {
          // The removal of newer versions since the listing may have made it the current one.
          if (filter?.versions === 'Noncurrent' && (await isCurrent(ask, task.row)))
            throw new S3Error('PreconditionFailed', { message: 'The version is the current one of its key by now.' })
          return deleteObject(task, operation, ask)
        },
      }
    case 'Copy':
      return { ...kind, run: (task, ask) => copyObject(task, operation, ask) }
    case 'Archive':
      return {
        ...kind,
        ...(!isHotClass(operation.storageClass) && {
          spends: true,
          estimate: (row, ask) => quoteDeal(row, { StorageClass: operation.storageClass }, ask),
        }),
        run: (task, ask) => archiveObject(task, operation.storageClass, ask),
      }
    case 'Encrypt':
      return {
        ...kind,
        run: ({ row }, ask) => encryptObject(row, ask),
      }
    case 'Rewrap':
      return {
        ...kind,
        run: ({ row }, ask) => rewrapObject(row, ask),
      }
    case 'Tag':
      return { ...kind, run: ({ row }, ask) => tagObject(row, operation, ask) }
    case 'Untag':
      return { ...kind, run: ({ row }, ask) => untagObject(row, operation, ask) }
    case 'Acl':
      return {
        ...kind,
        run: ({ row }, ask) => simply(ask, { ...on(row, { acl: '' }), method: 'PUT', headers: operation.headers }),
      }
    case 'Restore':
      return { ...kind, run: (task, ask) => restoreObject(task, operation, ask) }
    case 'Retain':
      return { ...kind, run: ({ row }, ask) => simply(ask, retention(row, operation)) }
    case 'LegalHold':
      return {
        ...kind,
        run: ({ row }, ask) =>
          simply(ask, putXml(row, 'legal-hold', document('LegalHold', element('Status', operation.status)))),
      }
    case 'Checksum':
      return {
        ...kind,
        concurrency: SLOW_CONCURRENCY,
        run: ({ row }, ask) => verifyContent(row, operation.algorithm, ask),
      }
    case 'Deal':
      return {
        ...{ spends: true, concurrency: SLOW_CONCURRENCY },
        estimate: (row, ask) => quoteDeal(row, operation.terms, ask),
        run: (task, ask, signal) => makeDeal(task, operation.terms, ask, signal),
      }
    case 'Renew':
      return {
        ...{ spends: true, concurrency: SLOW_CONCURRENCY },
        estimate: async (row, ask) => quoteDeal(row, await renewalTerms(row, operation.terms, ask), ask),
        run: (task, ask, signal) => renewDeal(task, operation.terms, ask, signal),
      }
  }
}

async function simply(ask: Ask, request: OwnRequest): Promise<Done> {
  const reply = await ask(request)
  await endOf(reply)
  return { status: reply.status }
}

async function sizeOf(row: Row, ask: Ask): Promise<Estimate> {
  const reply = await ask({ ...on(row), method: 'HEAD' })
  await endOf(reply)
  return { bytes: Number(reply.headers['content-length'] ?? 0) }
}

/**
 * Deletes once: after an attempt whose outcome is open, another delete marker could follow the first, and an object
 * that a client has put since stays.
 */
async function deleteObject(
  { row, triedSince }: Task,
  { bypassGovernance }: BatchOperation & { name: 'Delete' },
  ask: Ask,
): Promise<Done> {
  const headers: Record<string, string> = bypassGovernance ? { 'x-amz-bypass-governance-retention': 'true' } : {}
  if (triedSince !== undefined && row[2] === undefined) {
    const present = await found(row, ask)
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
  }
  return simply(ask, { ...on(row), method: 'DELETE', headers })
}

/** The headers of an object; undefined where there is none. */
async function found(row: Row, ask: Ask) {
  try {
    const reply = await ask({ ...on(row), method: 'HEAD' })
    await endOf(reply)
    return reply.headers
  } catch (error) {
    if (error instanceof S3Error && (error.code === 'NoSuchKey' || error.code === 'NoSuchVersion')) return undefined
    throw error
  }
}

/** Copies once: a version of the same content that is younger than the first attempt is the copy that it made. */
async function copyObject(
  { row, triedSince }: Task,
  { targetBucket, targetPrefix, headers }: BatchOperation & { name: 'Copy' },
  ask: Ask,
): Promise<Done> {
  const target: Row = [targetBucket, `${targetPrefix}${row[1]}`]
  if (triedSince !== undefined) {
    const made = await found(target, ask)
    // S3 tells whole seconds.
    const young = made && Date.parse(String(made['last-modified'])) >= triedSince - 1000
    if (young && made.etag === (await found(row, ask))?.etag) return { status: 200 }
  }
  return simply(ask, copyOf(row, target, headers))
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

async function archiveObject({ row, triedSince }: Task, storageClass: string, ask: Ask): Promise<Done> {
  const before = triedSince === undefined ? undefined : await found(row, ask)
  if (before?.['x-amz-storage-class'] === storageClass) return { status: 200 }
  return simply(ask, ontoItself(row, { 'x-amz-storage-class': storageClass }))
}

/** Leaves objects alone that are encrypted already. */
async function encryptObject(row: Row, ask: Ask): Promise<Done> {
  const before = await found(row, ask)
  if (before?.['x-amz-server-side-encryption'] !== undefined) return { status: 200, message: 'already encrypted' }
  return simply(ask, ontoItself(row, { 'x-amz-server-side-encryption': 'AES256' }))
}

async function rewrapObject(row: Row, ask: Ask): Promise<Done> {
  requireCurrent(row)
  const reply = await ask(withJson({ ...on(row, { 'x-encryption': '' }), method: 'POST' }, {}))
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

async function tagObject(row: Row, { tags, replace }: BatchOperation & { name: 'Tag' }, ask: Ask): Promise<Done> {
  const before = replace ? [] : await tagsOf(ask, row[0], row[1], on(row).query)
  const kept = before.filter(({ key }) => !tags.some((tag) => tag.key === key))
  return simply(ask, putXml(row, 'tagging', taggingDocument([...kept, ...tags])))
}

async function untagObject(row: Row, { keys }: BatchOperation & { name: 'Untag' }, ask: Ask): Promise<Done> {
  if (keys) {
    const before = await tagsOf(ask, row[0], row[1], on(row).query)
    const kept = before.filter(({ key }) => !keys.includes(key))
    if (kept.length === before.length) return { status: 200 }
    if (kept.length > 0) return simply(ask, putXml(row, 'tagging', taggingDocument(kept)))
  }
  return simply(ask, { ...on(row, { tagging: '' }), method: 'DELETE' })
}

/** A task succeeds when the restore is accepted. */
async function restoreObject(
  { row, triedSince }: Task,
  { days, tier }: BatchOperation & { name: 'Restore' },
  ask: Ask,
): Promise<Done> {
  const parameters = tier === undefined ? '' : `<GlacierJobParameters>${element('Tier', tier)}</GlacierJobParameters>`
  const body = document('RestoreRequest', `${element('Days', days)}${parameters}`)
  try {
    return await simply(ask, { ...on(row, { restore: '' }), method: 'POST', body })
  } catch (error) {
    const begun = error instanceof S3Error && error.code === 'RestoreAlreadyInProgress'
    if (begun && triedSince !== undefined) return { status: 202 }
    throw error
  }
}

function retention(row: Row, { mode, until, bypassGovernance }: BatchOperation & { name: 'Retain' }): OwnRequest {
  const body = document('Retention', `${element('Mode', mode)}${element('RetainUntilDate', until)}`)
  return putXml(row, 'retention', body, bypassGovernance ? { 'x-amz-bypass-governance-retention': 'true' } : {})
}
