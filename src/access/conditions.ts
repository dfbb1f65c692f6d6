import type { Facts, Tag } from '../api/access.js'
import type { Caller } from '../api/identity.js'
import type { RequestHead } from '../api/request.js'
import { canonicalId } from '../auth/credentials.js'
import { plainAddress } from '../common/cidr.js'
import { DAY_MS } from '../common/time.js'
import { copySourcePath } from '../http/addressing.js'
import type { Conditions } from './question.js'

const EXISTING = 's3:existingobjecttag/'
const REQUESTED = 's3:requestobjecttag/'
const HEADER = 's3:x-amz-'
const LOCK = 'x-amz-object-lock-'
const COPY_SOURCE = 's3:x-amz-copy-source'
const QUERY: readonly string[] = ['prefix', 'delimiter', 'max-keys']

/** The values of a request for conditions. A job has no head. */
export function conditionsOf(head: RequestHead | undefined, caller: Caller | undefined, more: Facts = {}): Conditions {
  const headers = more.headers ?? head?.headers ?? {}
  const facts: Readonly<Record<string, () => string | undefined>> = {
    'aws:currenttime': () => new Date(more.now ?? Date.now()).toISOString(),
    'aws:epochtime': () => String(Math.floor((more.now ?? Date.now()) / 1000)),
    'aws:principalaccount': () => caller && canonicalId(caller.identity),
    'aws:principalarn': () => arnOf(caller),
    'aws:principaltype': () => (caller ? 'User' : 'Anonymous'),
    'aws:userid': () => caller?.identity.accessKeyId ?? 'anonymous',
    'aws:username': () => caller?.identity.accessKeyId,
    'aws:referer': () => head && text(head.headers.referer),
    'aws:useragent': () => head && text(head.headers['user-agent']),
    'aws:securetransport': () => head && String(head.secure),
    'aws:sourceip': () => (head?.remoteAddress ? plainAddress(head.remoteAddress) : undefined),
    's3:authtype': () => caller?.authType,
    's3:signatureversion': () => caller?.signatureVersion,
    's3:versionid': () => more.versionId ?? head?.query.get('versionId'),
    's3:object-lock-mode': () => text(headers[`${LOCK}mode`]),
    's3:object-lock-retain-until-date': () => text(headers[`${LOCK}retain-until-date`]),
    's3:object-lock-legal-hold': () => text(headers[`${LOCK}legal-hold`]),
    's3:object-lock-remaining-retention-days': () => daysUntil(text(headers[`${LOCK}retain-until-date`]), more.now),
    's3:resourceaccount': () => more.owner,
  }
  const tags = (list: readonly Tag[] | undefined, name: string) =>
    list?.filter(({ key }) => key.toLowerCase() === name).map(({ value }) => value)
  return {
    get(key) {
      const fact = Object.hasOwn(facts, key) ? facts[key] : undefined
      if (fact) return listOf(fact())
      if (key.startsWith(EXISTING)) return some(tags(more.stored, key.slice(EXISTING.length)))
      if (key.startsWith(REQUESTED)) return some(tags(more.requested, key.slice(REQUESTED.length)))
      if (key === 's3:requestobjecttagkeys') return some(more.requested?.map((tag) => tag.key))
      if (key === COPY_SOURCE) return listOf(copySource(headers))
      if (key.startsWith(HEADER)) return listOf(text(headers[key.slice('s3:'.length)]))
      const name = key.startsWith('s3:') ? key.slice('s3:'.length) : ''
      if (more.listed !== undefined) return name === 'prefix' ? [more.listed] : undefined
      return QUERY.includes(name) ? listOf(head?.query.get(name)) : undefined
    },
  }
}

/** ARN of a key pair: `arn:aws:iam::<canonical id>:user/<access key id>`. */
export function arnOf(caller: Caller | undefined): string | undefined {
  return caller && `arn:aws:iam::${canonicalId(caller.identity)}:user/${caller.identity.accessKeyId}`
}

/** `bucket/key`, decoded: each of the encodings that the copy accepts is the same source. */
function copySource(headers: RequestHead['headers']): string | undefined {
  const header = text(headers['x-amz-copy-source'])
  return header === undefined ? undefined : (copySourcePath(header)?.path ?? header)
}

/** Whole days, rounded up: a date ten days ahead is less than that ahead once the request has arrived. */
function daysUntil(date: string | undefined, now = Date.now()): string | undefined {
  const until = date === undefined ? Number.NaN : Date.parse(date)
  return Number.isNaN(until) ? undefined : String(Math.ceil((until - now) / DAY_MS))
}

function text(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value
}

function listOf(value: string | undefined): readonly string[] | undefined {
  return value === undefined ? undefined : [value]
}

function some(values: readonly string[] | undefined): readonly string[] | undefined {
  return values && values.length > 0 ? values : undefined
}
