import t from 'tap'
import { S3Error } from '../../../common/errors/s3-error.js'
import { DAY_MS } from '../../../common/time.js'
import { conditionsOf } from '../../../src/access/conditions.js'
import { readDate } from '../../../src/access/language/operators.js'
import { GRANTS, uriOf } from '../../../src/access/values/acl-values.js'
import { READ_HEADERS } from '../../../src/access/values/header-values.js'
import { aclOfHeaders } from '../../../src/s3/access/acl-syntax.js'
import { readListRequest } from '../../../src/s3/bucket/list-objects.js'
import { redirectOf } from '../../../src/s3/object/attributes.js'
import { readCopySource } from '../../../src/s3/object/copy-source.js'
import { askedEncryption } from '../../../src/s3/object/encryption.js'
import { askedClass } from '../../../src/s3/object/storage-class.js'
import { askedLock } from '../../../src/s3/versions/lock-headers.js'
import { bytes, contentMd5 } from '../../support/content/content.js'
import { startInProcess } from '../../support/server/in-process.js'
import { requestHead } from '../../support/sign/request-head.js'
import { signedRequest } from '../../support/sign/signed-request.js'

// "One value, one parser": what a condition of a policy sees is what the operation does, whatever the client sends.

const ID = 'a'.repeat(64)
const owners = { owner: ID, bucketOwner: ID }
const features = {
  gateway: { features: async () => ({ locks: true, versions: true }), requireLockable: async () => undefined },
} as never
const lockOfHeaders = (headers: Texts) => askedLock({ headers, bucket: 'bucket', key: 'key' }, features)
const server = { server: { customerKeysOverHttp: true } } as never
const copying = { limits: { maxKeyBytes: 1024 }, gateway: { features: async () => ({ versions: true }) } } as never
const LOCK = 'x-amz-object-lock-'
const SSE = 'x-amz-server-side-encryption'
const ahead = new Date(Date.now() + 400 * DAY_MS).toISOString()

type Texts = Record<string, string>

interface Subject {
  /** Texts that are changed at random. */
  readonly seeds: readonly string[]
  /** Headers without which the operation reads nothing. */
  readonly beside?: Texts
  /** What the operation does with the header, as a text for each value; undefined if it ignores it. */
  done(headers: Texts): unknown
}

const grantees = (headers: Texts) =>
  [
    ...new Set(
      (aclOfHeaders(headers, owners, 'object')?.grants ?? []).map(({ grantee }) =>
        'id' in grantee ? `id=${grantee.id}` : `uri=${uriOf(grantee.group)}`,
      ),
    ),
  ].sort()
const dates = [ahead, '2090-02-28T23:59:59Z', '2090-01-01T00:00:00.123456+05:30', '9999-12-31T23:59:59-00:01']
const zones = ['+99:99', '+24:00', '-23:59', '+2359', '+00:60', 'Z', 'z', '', ' Z', '+1:00']

const subjects: Readonly<Record<string, Subject>> = {
  'x-amz-acl': {
    seeds: ['private', 'public-read', 'PUBLIC-READ', 'public-read-write', 'aws-exec-read'],
    done: (headers) => (aclOfHeaders(headers, owners, 'object') ? [headers['x-amz-acl']] : undefined),
  },
  ...Object.fromEntries(
    Object.keys(GRANTS).map((name) => [
      name,
      {
        seeds: [`id="${ID}"`, `id=${ID}, uri="${uriOf('AllUsers')}"`, `uri=${uriOf('LogDelivery')}`, `ID = "${ID}"`],
        done: grantees,
      },
    ]),
  ),
  [`${LOCK}mode`]: {
    seeds: ['GOVERNANCE', 'COMPLIANCE', 'governance'],
    beside: { [`${LOCK}retain-until-date`]: ahead },
    done: async (headers) => [(await lockOfHeaders(headers))?.mode],
  },
  [`${LOCK}retain-until-date`]: {
    seeds: [...dates, ...zones.map((zone) => `2090-01-02T03:04:05${zone}`), '4102444800', '2090-06-01'],
    beside: { [`${LOCK}mode`]: 'GOVERNANCE' },
    done: async (headers) => [(await lockOfHeaders(headers))?.until],
  },
  [`${LOCK}legal-hold`]: {
    seeds: ['ON', 'OFF', 'on'],
    done: async (headers) => [(await lockOfHeaders(headers))?.hold ? 'ON' : 'OFF'],
  },
  'x-amz-copy-source': {
    seeds: ['/bucket/a%20b+c', 'bucket/%C3%A9', 'bucket/a?versionId=null', '//bucket/a', 'bucket/%e9'],
    done: async (headers) => {
      const { bucket, key } = await readCopySource({ headers } as never, copying)
      return [`${bucket}/${key}`]
    },
  },
  'x-amz-website-redirect-location': {
    seeds: ['/there', 'https://example.com/', 'there'],
    done: (headers) => Object.values(redirectOf(headers)),
  },
  [SSE]: {
    seeds: ['AES256', 'aws:kms', 'aws:kms:dsse', 'aes256'],
    done: (headers) => [askedEncryption({ ...requestHead({ target: '/' }), headers }, server)?.algorithm],
  },
  [`${SSE}-aws-kms-key-id`]: {
    seeds: ['key-1', 'arn:aws:kms:us-east-1:1:key/a', 'a key'],
    beside: { [SSE]: 'aws:kms' },
    done: (headers) => {
      const order = askedEncryption({ ...requestHead({ target: '/' }), headers }, server)
      return [order?.algorithm === 'aws:kms' ? order.keyId : undefined]
    },
  },
  'x-amz-storage-class': {
    seeds: ['STANDARD', 'GLACIER', 'glacier'],
    done: (headers) => [askedClass(headers) ?? 'hot'],
  },
}

/** Read by nothing but a table of exact words, by the same function. */
const EXACT = ['x-amz-metadata-directive', 'x-amz-object-ownership']

/** A Deny judges unknown words, too, before the operation refuses them. */
const JUDGED = [SSE, `${SSE}-customer-algorithm`]

t.test('the list of headers that conditions show is complete', async (t) => {
  const known = new Set([...Object.keys(subjects), ...EXACT, ...JUDGED])
  t.same([...known].sort(), [...READ_HEADERS].sort())
  for (const name of JUDGED) t.same(seenBy({ [name]: 'AES192' }, `s3:${name}`), { value: ['AES192'] })
  for (const name of EXACT) {
    const seen = (value: string) => seenBy({ [name]: value }, `s3:${name}`)
    for (const value of ['copy', 'BUCKETOWNERENFORCED', 'AES128', '']) t.match(seen(value), { refused: String })
  }
})

for (const [name, { seeds, beside = {}, done }] of Object.entries(subjects)) {
  t.test(`${name}: random texts`, async (t) => {
    let read = 0
    for (const text of [...seeds, ...changed(name, seeds)]) {
      const headers = { ...beside, [name]: text }
      const key = name.startsWith(LOCK) ? name.replace('x-amz-', 's3:') : `s3:${name}`
      const seen = seenBy(headers, key)
      const does = await outcome(() => done(headers))
      // The operation may know more reasons to refuse; it never does what no condition could see.
      if ('refused' in does) continue
      read++
      if ('refused' in seen) return t.fail(`${JSON.stringify(text)}: the operation reads it, the condition does not`)
      if (!same(name, seen.value, does.value))
        return t.same(seen.value, does.value, `${JSON.stringify(text)} has two meanings`)
    }
    t.ok(read >= seeds.length / 4, `${read} texts are read`)
  })
}

/** As an operation reports the value. A listed date is the only one that operations keep in another form. */
function same(name: string, seen: unknown, does: unknown): boolean {
  const [values, results] = [seen as readonly string[], does as readonly unknown[]]
  if (name.endsWith('retain-until-date')) return readDate(values[0] ?? '') === results[0]
  if (name === 'x-amz-storage-class') return results[0] === 'hot' || results[0] === values[0]
  if (name.startsWith('x-amz-grant-')) return results.every((one) => values.includes(String(one)))
  return JSON.stringify(values) === JSON.stringify(results)
}

t.test('parameters of listings: random texts', async (t) => {
  for (const text of ['0', '1000', '0007', '5000', '', '1e3', ...changed('max-keys', ['12', '1001', '/'])]) {
    const target = `/bucket?max-keys=${encodeURIComponent(text)}&delimiter=${encodeURIComponent(text)}`
    const head = requestHead({ target })
    const conditions = conditionsOf(head, undefined)
    const does = await outcome(() => readListRequest(head.query))
    t.equal(conditions.get('s3:delimiter')?.[0] ?? '', text, 'an empty delimiter is none')
    const seen = await outcome(() => conditions.get('s3:max-keys')?.[0] ?? '1000')
    t.equal('refused' in seen, 'refused' in does, text)
    if ('value' in does && 'value' in seen)
      t.equal(Number(seen.value), (does.value as { maxKeys: number }).maxKeys, text)
  }
})

t.test('the hash of the body by either brand of its header, and in a URL', async (t) => {
  const seen = (headers: [string, string][], target = '/bucket/key') =>
    conditionsOf(requestHead({ target, headers }), undefined).get('s3:x-amz-content-sha256')
  t.same(seen([['x-cloud-content-sha256', 'UNSIGNED-PAYLOAD']]), ['UNSIGNED-PAYLOAD'])
  t.same(seen([['x-amz-content-sha256', 'AB'.repeat(32)]]), ['ab'.repeat(32)])
  t.same(seen([], '/bucket/key?X-Amz-Content-Sha256=UNSIGNED-PAYLOAD'), ['UNSIGNED-PAYLOAD'])
})

t.test('over HTTP: no spelling of a date, a grantee or a number passes a Deny', async (t) => {
  const pair = { accessKeyId: 'capped', secretAccessKey: 'secret-of-capped' }
  const owner = { accessKeyId: 'owner-key', secretAccessKey: 'secret-of-the-owner' }
  const deny = (Condition: object) => ({ Effect: 'Deny', Action: 's3:*', Resource: '*', Condition })
  const uri = uriOf('AllUsers')
  const policy = {
    Version: '2012-10-17',
    Statement: [
      { Effect: 'Allow', Action: 's3:*', Resource: '*' },
      deny({ NumericGreaterThan: { 's3:object-lock-remaining-retention-days': '10' } }),
      deny({ StringEquals: { 's3:x-amz-grant-read': `uri="${uri}"` } }),
      deny({ NumericGreaterThan: { 's3:max-keys': '10' } }),
      deny({ StringEquals: { 's3:x-amz-content-sha256': 'UNSIGNED-PAYLOAD' } }),
    ],
  }
  const { endpoint } = await startInProcess(t, 'full', {
    identities: [owner, { ...pair, policies: [policy] }],
    objectOwnership: 'ObjectWriter',
  })
  const made = { method: 'PUT', path: '/box', headers: { 'x-amz-bucket-object-lock-enabled': 'true' } }
  t.equal((await signedRequest(endpoint, owner, made)).status, 200)
  const put = async (headers: Texts) => {
    const wanted = { method: 'PUT', path: '/box/key', body: 'x', headers: { ...contentMd5('x'), ...headers } }
    const { status, code } = await signedRequest(endpoint, pair, wanted)
    return `${status} ${code}`
  }
  const until = (date: string) => put({ [`${LOCK}mode`]: 'GOVERNANCE', [`${LOCK}retain-until-date`]: date })
  const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 19)
  for (const zone of zones) {
    const readable = readDate(`${inDays(400)}${zone}`) !== undefined
    t.equal(await until(`${inDays(400)}${zone}`), readable ? '403 AccessDenied' : '400 InvalidArgument', `zone ${zone}`)
  }
  t.equal(await until(`${inDays(400)}.5Z`), '403 AccessDenied')
  t.equal(await until('9999-12-31T23:59:59-23:59'), '400 InvalidArgument', 'a year of five digits')
  t.equal(await until(`${inDays(5)}Z`), '200 ')

  for (const grant of [`uri="${uri}"`, `uri=${uri}`, `URI = "${uri}"`, `id=${ID}, uri="${uri}"`])
    t.equal(await put({ 'x-amz-grant-read': grant }), '403 AccessDenied', grant)
  t.equal(await put({ 'x-amz-grant-read': 'uri' }), '400 InvalidArgument')
  t.equal(await put({ 'x-amz-grant-read': `id="${ID}"` }), '200 ')

  const list = async (maxKeys: string) => {
    const { status, code } = await signedRequest(endpoint, pair, {
      ...{ method: 'GET', path: '/box', query: { 'max-keys': maxKeys } },
    })
    return `${status} ${code}`
  }
  for (const [maxKeys, wanted] of [
    ['10', '200 '],
    ['0011', '403 AccessDenied'],
    ['5000', '403 AccessDenied'],
    ['1e3', '400 InvalidArgument'],
    ['x', '400 InvalidArgument'],
  ] as const)
    t.equal(await list(maxKeys), wanted, maxKeys)
  for (const versionId of ['\0', 'x', '../key', 'A'.repeat(32)])
    for (const by of [pair, owner]) {
      const { status, code } = await signedRequest(endpoint, by, {
        method: 'GET',
        path: '/box/key',
        query: { versionId },
      })
      t.equal(`${status} ${code}`, '400 InvalidArgument', JSON.stringify(versionId))
    }
})

type Outcome = { readonly value: unknown } | { readonly refused: string }

async function outcome(run: () => unknown): Promise<Outcome> {
  try {
    return { value: await run() }
  } catch (error) {
    if (error instanceof S3Error) return { refused: error.code }
    throw error
  }
}

function seenBy(headers: Texts, key: string): Outcome {
  try {
    return { value: conditionsOf({ ...requestHead({ target: '/' }), headers }, undefined).get(key) }
  } catch (error) {
    if (error instanceof S3Error) return { refused: error.code }
    throw error
  }
}

/** Texts near the seeds, the same in every run: one to three characters are replaced, removed, doubled or swapped. */
function changed(name: string, seeds: readonly string[]): string[] {
  const random = bytes(name, 16_000)
  const alphabet = '0123456789+-:.TZ"=, /%éaAxX\t'
  let at = 0
  const next = (below: number) => (random[at++ % random.length] ?? 0) % below
  return Array.from({ length: 1500 }, () => {
    const chars = Array.from(seeds[next(seeds.length)] ?? '')
    for (let n = next(3); n >= 0 && chars.length > 0; n--) {
      const place = next(Math.min(chars.length, 256))
      const char = alphabet[next(alphabet.length)] ?? ''
      const kind = next(4)
      if (kind === 0) chars[place] = char
      else if (kind === 1) chars.splice(place, 1)
      else if (kind === 2) chars.splice(place, 0, char)
      else chars.splice(place, 1, chars[0] ?? '')
    }
    return chars.join('')
  })
}
