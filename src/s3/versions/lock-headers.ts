import { S3Error, unless } from '../../../common/errors/s3-error.js'
import { askedOf } from '../../access/required-actions.js'
import { headerText } from '../../access/values/header-values.js'
import {
  HOLD,
  invalidLock,
  MODE,
  readLegalHold,
  readLockMode,
  readRetainUntil,
  UNTIL,
} from '../../access/values/lock-values.js'
import type { RequestedAction } from '../../api/access.js'
import type { Context } from '../../api/context.js'
import type { ReplyHeaders, RequestBody, S3Request } from '../../api/request.js'
import type { ObjectLock } from '../../api/versions.js'
import { requireLocks } from './version.js'

/** Headers of a write that lock the object, and of GET and HEAD that say how it is locked. */
export const LOCK_HEADERS: readonly string[] = [MODE, UNTIL, HOLD]

interface LockingWrite {
  readonly headers: S3Request['headers']
  readonly bucket: string
  readonly key: string
  /** Absent for a write without bytes, such as a copy. */
  readonly body?: Pick<RequestBody, 'declaredChecksum'>
}

/**
 * Reads how a write is to lock its object; undefined for not at all.
 * @throws S3Error InvalidArgument, NotImplemented on a gateway without locks, InvalidRequest for a body that declares
 *   no digest and for a bucket without object lock, AccessDenied for a caller who may not lock
 */
export async function askedLock(
  { headers, body, bucket, key }: LockingWrite,
  context: Pick<Context, 'gateway'>,
): Promise<ObjectLock | undefined> {
  const named = LOCK_HEADERS.find((name) => headers[name] !== undefined)
  if (named === undefined) return undefined
  await requireLocks(context, `The header ${named}`)
  const lock = lockOf(headers, Date.now())
  if (body && headers['content-md5'] === undefined && body.declaredChecksum === undefined)
    throw new S3Error('InvalidRequest', {
      message:
        'Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters',
    })
  // Before the bytes are sent, and for an upload in parts before the first of them.
  await context.gateway.requireLockable(bucket, key)
  return lock
}

/** Throws InvalidArgument. */
function lockOf(headers: S3Request['headers'], now: number): ObjectLock {
  const [mode, until, hold] = [headerText(headers, MODE), headerText(headers, UNTIL), headerText(headers, HOLD)]
  if ((mode === undefined) !== (until === undefined))
    throw invalidLock('x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied', UNTIL)
  const asked = {
    ...(mode !== undefined && until !== undefined && { mode: readLockMode(mode), until: readRetainUntil(until) }),
    ...(hold !== undefined && readLegalHold(hold) && { hold: true as const }),
  }
  if (asked.until !== undefined) requireAhead(asked.until, now)
  return asked
}

/** Throws InvalidArgument for an end that has passed. S3 bounds only the period of the default retention. */
export function requireAhead(until: number, now: number): void {
  if (until > now) return
  throw invalidLock('The retain until date must be in the future!', UNTIL, new Date(until).toISOString())
}

/**
 * Returns the headers of GET and HEAD that say how an object is locked, as far as the caller may know: retention and
 * legal hold have an action each.
 * @param versionId as the request names it
 */
export async function lockHeaders(
  { bucket, key, lock }: { readonly bucket: string; readonly key: string; readonly lock?: ObjectLock | undefined },
  context: Pick<Context, 'authorizer' | 'caller'>,
  versionId: string | undefined,
): Promise<ReplyHeaders> {
  if (!lock) return {}
  const { mode, until, hold } = lock
  const headers: ReplyHeaders = {}
  const knows = (action: string) => mayKnow(askedOf(action, { bucket, key, versionId }), bucket, context)
  if (mode !== undefined && until !== undefined && (await knows('s3:GetObjectRetention'))) {
    headers[MODE] = mode
    headers[UNTIL] = new Date(until).toISOString()
  }
  if (hold && (await knows('s3:GetObjectLegalHold'))) headers[HOLD] = 'ON'
  return headers
}

async function mayKnow(
  asked: RequestedAction,
  bucket: string,
  { authorizer, caller }: Pick<Context, 'authorizer' | 'caller'>,
): Promise<boolean> {
  if (
    !(await unless(
      'AccessDenied',
      authorizer.decide(asked).then(() => true),
      false,
    ))
  )
    return false
  const isOwn = caller !== undefined && !(await authorizer.opened(bucket))
  return isOwn || authorizer.granted(asked.action, bucket, asked.key, asked.more?.versionId)
}
