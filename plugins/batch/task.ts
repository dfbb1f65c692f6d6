import { type OwnRequest, type Reply, S3Error } from 'dealgate/plugin'
import type { Row } from './order.js'

/** Carries out a request in the name of the creator of the job. */
export type Send = (request: OwnRequest) => Promise<Reply>

/** One row of a job. */
export interface Task {
  readonly row: Row
  /** Stays the same whenever the row is tried again, so that what costs money is done once. */
  readonly token: string
  /**
   * When the row may have been tried for the first time, ms since 1970, if a server has died or an attempt has
   * failed by an error of the server since: it may be done already. Absent for a row that certainly was not tried.
   */
  readonly triedSince?: number
}

export interface Outcome {
  /** HTTP status. */
  readonly status: number
  /** For the report. */
  readonly message?: string
}

export interface Estimate {
  readonly bytes: number
  /** Attofil. */
  readonly price?: bigint
}

/** The header by which a request is refused unless the bucket has the owner that an order expects. */
export function ownerGuard({ owner }: { readonly owner?: string }): Readonly<Record<string, string>> {
  return owner === undefined ? {} : { 'x-amz-expected-bucket-owner': owner }
}

/** Request to the object of a row, or to the version that it names. */
export function on([bucket, key, versionId]: Row, query: Readonly<Record<string, string>> = {}) {
  const all = versionId === undefined ? query : { ...query, versionId }
  return { bucket, key, query: all } as const
}

export function withJson(request: OwnRequest, body: object): OwnRequest {
  const headers = { ...request.headers, 'content-type': 'application/json' }
  return { ...request, headers, query: { ...request.query, format: 'json' }, body: JSON.stringify(body) }
}

/** A copy of an earlier version onto its key would make that the current one. */
export function requireCurrent([, , versionId]: Row): void {
  if (versionId === undefined) return
  throw new S3Error('InvalidRequest', { message: 'This operation is for current versions: leave the version id out.' })
}
