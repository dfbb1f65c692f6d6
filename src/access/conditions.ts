import { plainAddress } from '../../common/cidr.js'
import { DAY_MS } from '../../common/time.js'
import type { Facts, Tag } from '../api/access.js'
import type { Caller } from '../api/identity.js'
import type { RequestHead } from '../api/request.js'
import { canonicalId } from '../auth/credentials.js'
import { brandedHeader } from '../http/headers.js'
import type { Conditions } from './question.js'
import { headerText, headerValues } from './values/header-values.js'
import { readRetainUntil, UNTIL } from './values/lock-values.js'
import { type ListParameter, listValue } from './values/query-values.js'

const EXISTING = 's3:existingobjecttag/'
const REQUESTED = 's3:requestobjecttag/'

/**
 * The values of a request for conditions, as its operation reads them. A job has no head. `get` throws S3Error for a
 * value that cannot be read.
 */
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
    'aws:referer': () => head && headerText(head.headers, 'referer'),
    'aws:useragent': () => head && headerText(head.headers, 'user-agent'),
    'aws:securetransport': () => head && String(head.secure),
    'aws:sourceip': () => (head?.remoteAddress ? plainAddress(head.remoteAddress) : undefined),
    's3:authtype': () => caller?.authType,
    's3:signatureversion': () => caller?.signatureVersion,
    's3:versionid': () => more.versionId ?? head?.query.get('versionId'),
    's3:object-lock-remaining-retention-days': () => daysUntil(headerText(headers, UNTIL), more.now),
    's3:x-amz-content-sha256': () => head && declaredHash(head),
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
      const name = key.startsWith('s3:') ? key.slice('s3:'.length) : ''
      if (name.startsWith('x-amz-')) return headerValues(headers, name)
      if (name.startsWith('object-lock-')) return headerValues(headers, `x-amz-${name}`)
      if (more.listed !== undefined) return name === 'prefix' ? [more.listed] : undefined
      return head && isListParameter(name) ? listOf(listValue(head.query, name)) : undefined
    },
  }
}

/** ARN of a key pair: `arn:aws:iam::<canonical id>:user/<access key id>`. */
export function arnOf(caller: Caller | undefined): string | undefined {
  return caller && `arn:aws:iam::${canonicalId(caller.identity)}:user/${caller.identity.accessKeyId}`
}

/**
 * What the client says about the body, by either name of the header or in a presigned URL; hexadecimal digits in lower
 * case. The signature covers it.
 */
function declaredHash({ headers, query }: RequestHead): string | undefined {
  const pinned = () => query.entries.find(([name]) => /^x-(amz|cloud)-content-sha256$/i.test(name))?.[1]
  const declared = brandedHeader(headers, 'content-sha256')?.value ?? pinned()
  return declared && /^[0-9a-f]{64}$/i.test(declared) ? declared.toLowerCase() : declared
}

/** Whole days, rounded up: a date ten days ahead is less than that ahead once the request has arrived. */
function daysUntil(date: string | undefined, now = Date.now()): string | undefined {
  return date === undefined ? undefined : String(Math.ceil((readRetainUntil(date) - now) / DAY_MS))
}

function isListParameter(name: string): name is ListParameter {
  return name === 'prefix' || name === 'delimiter' || name === 'max-keys'
}

function listOf(value: string | undefined): readonly string[] | undefined {
  return value === undefined ? undefined : [value]
}

function some(values: readonly string[] | undefined): readonly string[] | undefined {
  return values && values.length > 0 ? values : undefined
}
