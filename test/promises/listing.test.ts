import t, { type Test } from 'tap'
import { bytes, md5 } from '../support/content/content.js'
import { type Dealgate, inEachMode } from '../support/server/dealgate.js'
import { send, sendAll, targetOf } from '../support/sign/send.js'

/** docs/design.md, promise 6: listings are in UTF-8 byte order, complete and paged with opaque tokens. */

const BUCKET = 'listing'
/**
 * Number of keys: in one mode more than the largest page holds, which no gateway decides. In the other one all pages
 * are small.
 */
const COUNTS = { full: 1150, legacy: 500 }
/** Pages of a listing by small ones, and the smallest size: each page is a walk of its own without a snapshot. */
const [PAGES, SMALLEST] = [12, 7]
/** Pages of a listing by markers. */
const MARKED_PAGES = 3

/** Words whose order by UTF-16 units, by UTF-8 bytes and by a locale differ. */
const WORDS = ['a', 'B', 'b-', 'b', 'b0', 'é', 'e\u0301', '\uff5e', '\ufffd', '😀', '𝒳', '~', '!', ' ', '+', '日本']

/** Paths of one to four elements; folders end in `.d`, so that no key is both file and folder. */
function generateKeys(count: number): string[] {
  const random = bytes('keys', count * 8)
  const keys = new Set<string>()
  for (let i = 0; keys.size < count; i++) {
    const word = (n: number) => WORDS[(random[(i * 5 + n) % random.length] ?? 0) % WORDS.length] ?? ''
    const depth = (random[(i * 7) % random.length] ?? 0) % 4
    const folders = Array.from({ length: depth }, (_, n) => `${word(n)}.d/`)
    keys.add(`${folders.join('')}${word(4)}${i % 600}`)
  }
  return [...keys]
}

const inBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

/** What S3 would list: keys and common prefixes, each once, in byte order. */
function model(keys: readonly string[], prefix: string, delimiter: string, after = ''): string[] {
  const names = new Set<string>()
  for (const key of keys) {
    if (!key.startsWith(prefix)) continue
    const at = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length)
    names.add(at < 0 ? key : key.slice(0, at + delimiter.length))
  }
  return [...names].sort(inBytes).filter((name) => after === '' || inBytes(name, after) > 0)
}

const KEYS = { full: generateKeys(COUNTS.full), legacy: generateKeys(COUNTS.legacy) }

inEachMode(t, async (t, server) => {
  t.equal((await send(server, { method: 'PUT', target: `/${BUCKET}` })).status, 200)
  const puts = await sendAll(
    server,
    KEYS[server.mode].map((key) => ({ method: 'PUT', target: targetOf(BUCKET, key), body: Buffer.from(key) })),
  )
  t.ok(puts.every(({ status }) => status === 200))
  await t.test('all, by pages of two sizes', (t) => whole(t, server))
  await t.test('prefixes and delimiters', (t) => grouped(t, server))
  await t.test('markers', (t) => markers(t, server))
  await t.test('tokens are opaque and checked', (t) => tokens(t, server))
})

interface Page {
  /** Keys and prefixes as they come, keys first. */
  readonly names: string[]
  readonly etags: string[]
  readonly truncated: boolean
  readonly next: string
  readonly count: number
}

async function page(server: Dealgate, query: Record<string, string>): Promise<Page> {
  const text = new URLSearchParams({ 'encoding-type': 'url', ...query }).toString().replaceAll('+', '%20')
  const answer = await send(server, { method: 'GET', target: `/${BUCKET}?${text}` })
  const body = answer.body.toString()
  if (answer.status !== 200) throw new Error(`${answer.status} ${body}`)
  const all = (name: string) =>
    [...body.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map(([, value = '']) => value)
  // The first Prefix is that of the request.
  const names = [...all('Key'), ...all('Prefix').slice(1)].map(decodeURIComponent)
  return {
    names,
    etags: all('ETag'),
    truncated: all('IsTruncated')[0] === 'true',
    next: all('NextContinuationToken')[0] ?? decodeURIComponent(all('NextMarker')[0] ?? ''),
    count: names.length,
  }
}

/** Every page; each name once. */
async function pages(
  server: Dealgate,
  query: Record<string, string>,
  size: number,
): Promise<{ names: string[]; pages: number }> {
  const names: string[] = []
  let token: Record<string, string> = {}
  for (let n = 1; ; n++) {
    const got = await page(server, { 'list-type': '2', 'max-keys': String(size), ...query, ...token })
    if (got.count > size) throw new Error(`${got.count} names on a page of ${size}`)
    const first = [...got.names].sort(inBytes)[0]
    const last = names.at(-1)
    if (first !== undefined && last !== undefined && inBytes(last, first) >= 0)
      throw new Error(`${first} comes after ${last}`)
    names.push(...got.names.sort(inBytes))
    if (!got.truncated) return { names, pages: n }
    token = { 'continuation-token': got.next }
  }
}

async function whole(t: Test, server: Dealgate): Promise<void> {
  const expected = model(KEYS[server.mode], '', '')
  t.same((await pages(server, {}, 1000)).names, expected, 'pages of 1000')
  const small = await pages(server, {}, 17)
  t.same(small.names, expected, 'pages of 17')
  t.equal(small.pages, Math.ceil(expected.length / 17), 'each full')
  const one = await page(server, { 'list-type': '2', prefix: expected[0] ?? '', 'max-keys': '1' })
  t.same(one.etags, [`&quot;${md5(Buffer.from(expected[0] ?? ''))}&quot;`])
  t.same((await page(server, { 'list-type': '2', 'max-keys': '1000' })).names, expected.slice(0, 1000), 'in order')
}

async function grouped(t: Test, server: Dealgate): Promise<void> {
  const cases: [prefix: string, delimiter: string][] = [
    ['', '/'],
    ['b', '/'],
    ['b.d/', '/'],
    ['😀.d/', '/'],
    ['b.d/', ''],
    ['', '.d/'],
    ['', '0'],
    ['nothing/', '/'],
  ]
  const most = Math.max(...cases.map(([prefix, delimiter]) => model(KEYS[server.mode], prefix, delimiter).length))
  t.equal(most > 1000, server.mode === 'full', 'in one mode, a page of 1000 ends within a grouped listing')
  for (const [prefix, delimiter] of cases) {
    const expected = model(KEYS[server.mode], prefix, delimiter)
    const query = { prefix, delimiter }
    t.same(
      (await pages(server, query, 1000)).names,
      expected,
      `"${prefix}" by "${delimiter}", ${expected.length} names`,
    )
    const size = Math.max(SMALLEST, Math.ceil(expected.length / PAGES))
    t.same((await pages(server, query, size)).names, expected, `by pages of ${size}`)
  }
}

async function markers(t: Test, server: Dealgate): Promise<void> {
  for (const delimiter of ['', '/']) {
    const expected = model(KEYS[server.mode], '', delimiter)
    const names: string[] = []
    const size = Math.ceil(expected.length / MARKED_PAGES)
    for (let marker = '', pages = 1; ; pages++) {
      const got = await page(server, { delimiter, 'max-keys': String(size), marker })
      names.push(...got.names.sort(inBytes))
      if (!got.truncated) {
        t.equal(pages, MARKED_PAGES)
        break
      }
      marker = delimiter === '' ? (names.at(-1) ?? '') : got.next
    }
    t.same(names, expected, `ListObjects by "${delimiter}"`)
    for (const after of ['b', 'b.d/', 'b.d/zzz', '😀']) {
      const got = await page(server, { 'list-type': '2', 'start-after': after, delimiter, 'max-keys': '5' })
      t.same(
        got.names.sort(inBytes),
        model(KEYS[server.mode], '', delimiter, after).slice(0, 5),
        `after "${after}" by "${delimiter}"`,
      )
    }
  }
  const versions = await page(server, { versions: '', 'max-keys': '5', prefix: 'b.d/' })
  t.same(versions.names, model(KEYS[server.mode], 'b.d/', '').slice(0, 5))
  const none = await page(server, { 'list-type': '2', 'max-keys': '0' })
  t.same([none.count, none.truncated], [0, false])
}

async function tokens(t: Test, server: Dealgate): Promise<void> {
  const { next } = await page(server, { 'list-type': '2', 'max-keys': '3' })
  t.match(next, /^[\w-]+$/, 'a token is no name')
  for (const token of ['x', next.slice(1), '../../etc/passwd']) {
    const target = `/${BUCKET}?continuation-token=${encodeURIComponent(token)}&list-type=2`
    t.equal((await send(server, { method: 'GET', target })).code, 'InvalidArgument', `"${token}"`)
  }
  // What the page before ended with may be gone by now.
  const [first = '', second = '', third = '', fourth = ''] = model(KEYS[server.mode], '', '')
  for (const key of [second, third]) await send(server, { method: 'DELETE', target: targetOf(BUCKET, key) })
  t.same((await page(server, { 'list-type': '2', 'max-keys': '1', 'continuation-token': next })).names, [fourth])
  t.same((await page(server, { 'list-type': '2', 'max-keys': '2' })).names, [first, fourth], 'deleted keys are seen')
  await send(server, { method: 'PUT', target: targetOf(BUCKET, second), body: Buffer.from(second) })
  t.same((await page(server, { 'list-type': '2', 'max-keys': '2' })).names, [first, second], 'and what was put')
}
