import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import { countRows } from '../../support/content/rows.js'
import { until } from '../../support/waiting.js'
import { crashImages } from '../crash-images.js'
import { onPostgres } from '../engine.js'
import { type Client, connectTo, start } from './client.js'
import { DealClient, type Envelope, UNTIL_ACTIVE } from './deal-client.js'

t.setTimeout(1_200_000)

type Step = readonly [name: string, run: () => Promise<unknown>]

/** An image of the folder, with what was being done. */
type Image<Known> = Known & { readonly folder: string; readonly step: string }

/** Looks at what a crash after any step leaves. */
function afterAnyCrash<Known>(
  what: string,
  record: (t: Test) => Promise<Image<Known>[]>,
  check: (t: Test, image: Image<Known>) => Promise<void>,
): void {
  t.test(`a crash after any step ${what}`, { skip: onPostgres && 'on SQLite' }, async (t) => {
    const images = await record(t)
    t.ok(images.length > 13, 'more than changes')
    for (const [index, image] of images.entries()) await t.test(`${index}: ${image.step}`, (t) => check(t, image))
  })
}

/** Of objects in the index and in files. */
const SMALL = Buffer.from('small')
const LARGE = randomBytes(100_000)
const OTHER = randomBytes(90_000)

/** What a client knows. */
interface Known {
  /** By key; two while one takes the place of the other, undefined for none. */
  readonly bodies: Map<string, (Buffer | undefined)[]>
  /** By token: its deal, once that has been answered. */
  readonly deals: Map<string, string | undefined>
}

/** The deals that are ordered: all of a bucket, or one object. */
const ORDERS: Readonly<Record<string, string | undefined>> = {
  whole: undefined,
  one: 'large',
  again: 'small',
  busy: undefined,
}

function order(client: DealClient, token: string): Promise<Envelope> {
  const key = ORDERS[token]
  return key === undefined ? client.deals('bucket', {}, token) : client.deal('bucket', key, {}, token)
}

/** Does all there is to do with deals, one thing after the other. */
async function recordDeals(t: Test): Promise<Image<Known>[]> {
  const data = temporaryFolder(t)
  const services = await start(data, {}, { control: true })
  t.teardown(() => services.stop())
  const client = new DealClient(await connectTo(services))
  const known: Known = { bodies: new Map(), deals: new Map() }
  let step = ''
  const put = async (key: string, body: Buffer): Promise<void> => {
    const [before] = known.bodies.get(key) ?? []
    known.bodies.set(key, [before, body])
    await client.put('bucket', key, body)
    known.bodies.set(key, [body])
  }
  const remove = async (key: string): Promise<void> => {
    known.bodies.set(key, [...(known.bodies.get(key) ?? []), undefined])
    await client.gateway.call('RemoveObject', { bucketName: 'bucket', objects: [key] })
    known.bodies.delete(key)
  }
  const deal = async (token: string): Promise<void> => {
    known.deals.set(token, undefined)
    const { status, data, message } = await order(client, token)
    if (status !== 'success') throw new Error(message)
    known.deals.set(token, data.dealCid)
  }
  const evict = async (key: string): Promise<void> => {
    const { headers } = await client.gateway.head('bucket', key)
    const { status, message } = await client.evict('bucket', key, String(headers['x-cloud-generation']))
    if (status !== 'success') throw new Error(message)
  }
  const retrieve = async (key: string): Promise<void> => {
    const { status, message } = await client.retrieve('bucket', key)
    if (status !== 'success') throw new Error(message)
  }
  const steps: readonly Step[] = [
    ['upload to the index', () => put('small', SMALL)],
    ['upload to a file', () => put('large', LARGE)],
    ['deal of the bucket', () => deal('whole')],
    ['deal of an object', () => deal('one')],
    ['time passes', () => client.advance(UNTIL_ACTIVE)],
    ['eviction from a file', () => evict('large')],
    ['eviction from the index', () => evict('small')],
    ['deal of what is cold', () => deal('again')],
    ['coming back to a file', () => retrieve('large')],
    ['coming back to the index', () => retrieve('small')],
    ['second eviction', () => evict('large')],
    ['overwriting what is cold', () => put('large', OTHER)],
    ['changes during a deal', () => Promise.all([deal('busy'), put('large', LARGE), remove('small')])],
    ['the end of the deals', () => client.advance('600000')],
  ]
  await client.gateway.call('MakeBucket', { bucketName: 'bucket' })
  const work = async () => {
    for (const [name, run] of steps) {
      step = name
      await run()
    }
    step = 'stop'
    await services.stop()
  }
  const now = () => ({ step, bodies: new Map(known.bodies), deals: new Map(known.deals) })
  return crashImages(t, data, work, now)
}

async function checkDeals(t: Test, { folder, bodies, deals }: Image<Known>): Promise<void> {
  const services = await start(folder, {}, { control: true })
  try {
    const client = new DealClient(await connectTo(services))
    for (const [token, dealCid] of deals) {
      const { status, data } = await order(client, token)
      // What it is to be made of may be gone, where it was not made before.
      if (dealCid !== undefined) t.match({ status, data }, { status: 'success', data: { dealCid } })
    }
    await client.advance(UNTIL_ACTIVE)
    let used = 0
    let inFiles = 0
    for (const [key, possible] of bodies) {
      const { status } = await client.gateway.head('bucket', key)
      if (status === 404) {
        t.ok(possible.includes(undefined), `${key} may be gone`)
        continue
      }
      t.match(await client.retrieve('bucket', key), { status: 'success' })
      const { body } = await client.gateway.get('bucket', key)
      t.ok(
        possible.some((one) => one?.equals(body)),
        `${key} has the bytes it was given`,
      )
      used += body.length
      if (body.length > SMALL.length) inFiles++
    }
    t.equal(await client.used(), used)
    await until(
      'only the files of objects are left',
      () => files(join(folder, 'gateway', 'objects')).length === inFiles,
    )
    await until(
      'providers hold the files of their deals alone',
      () =>
        files(join(folder, 'network', 'providers')).length ===
        count(folder, 'network', 'deals WHERE custody IS NOT NULL'),
    )
    t.same(files(join(folder, 'network', 'staging')), [])
    const made = count(folder, 'network', 'deals')
    t.equal(count(folder, 'gateway', 'deals'), made, 'the network knows no other deals than the gateway')
    t.equal(count(folder, 'gateway', 'deals WHERE record IS NULL'), 0)
    t.equal(made, count(folder, 'gateway', 'deals WHERE token IS NOT NULL'), 'one for each token')
    t.equal(count(folder, 'gateway', 'deal_files WHERE cid IS NULL'), 0)
    t.equal(count(folder, 'gateway', 'retained'), 0)
    t.equal(count(folder, 'gateway', 'bodies'), count(folder, 'gateway', 'objects WHERE body_at = 1'))
  } finally {
    await services.stop()
  }
}

const bucketName = 'bucket'
const KEY = 'key'

/** The versions of the key from the newest, by their bodies; `-` is a delete marker. */
interface Versions {
  /** Before and after the change under way, or twice the same. */
  readonly possible: readonly (readonly string[])[]
}

interface Listed {
  readonly versionId: string
  readonly isLatest: boolean
  readonly deleteMarker?: true
  readonly size?: number
}

async function recordVersions(t: Test): Promise<Image<Versions>[]> {
  const data = temporaryFolder(t)
  const services = await start(data)
  t.teardown(() => services.stop())
  const client = await connectTo(services)
  await client.call('MakeBucket', { bucketName })
  let step = ''
  let possible: string[][] = [[]]
  const put = (name: string, size: number) => async () => {
    const answer = await client.put(bucketName, KEY, name.padEnd(size, '.'))
    if (answer.status !== 200) throw new Error(answer.text)
  }
  const remove = () => client.call('RemoveObject', { bucketName, objects: [KEY] })
  const removeAt = (place: number) => async () => {
    const { versionId } = (await versionsOf(client))[place] as Listed
    await client.call('RemoveObject', { bucketName, objects: [KEY], versionId })
  }
  const versioning = (status: string) => () => client.call('SetBucketVersioning', { bucketName, status })
  const steps: readonly [...Step, after: string[]][] = [
    ['an object without versioning', put('a', LARGE.length), ['a']],
    ['versioning', versioning('Enabled'), ['a']],
    ['a version over the null version', put('b', LARGE.length), ['b', 'a']],
    ['one in the index', put('c', 10), ['c', 'b', 'a']],
    ['a marker', remove, ['-', 'c', 'b', 'a']],
    ['the marker goes', removeAt(0), ['c', 'b', 'a']],
    ['the current version goes', removeAt(0), ['b', 'a']],
    ['suspension', versioning('Suspended'), ['b', 'a']],
    ['a null version', put('d', LARGE.length), ['d', 'b']],
    ['another in its place', put('e', LARGE.length), ['e', 'b']],
    ['a null marker', remove, ['-', 'b']],
    ['a version below goes', removeAt(1), ['-']],
    ['and the last one', removeAt(0), []],
  ]
  const work = async () => {
    for (const [name, run, after] of steps) {
      step = name
      possible = [possible.at(-1) ?? [], after]
      await run()
      possible = [after]
    }
    await services.stop()
  }
  return crashImages(t, data, work, () => ({ step, possible }))
}

async function checkVersions(t: Test, { folder, possible }: Image<Versions>): Promise<void> {
  const services = await start(folder)
  try {
    const client = await connectTo(services)
    const listed = await versionsOf(client)
    const found: string[] = []
    for (const { versionId, deleteMarker } of listed) {
      const { status, text } = await client.get(bucketName, KEY, { 'x-cloud-version-id': versionId })
      t.equal(status, deleteMarker ? 405 : 200)
      found.push(deleteMarker ? '-' : text.slice(0, 1))
    }
    t.ok(
      possible.some((versions) => versions.join() === found.join()),
      `${found} is one of ${JSON.stringify(possible)}`,
    )
    t.same(
      listed.map(({ isLatest }) => isLatest),
      listed.map((_, place) => place === 0),
    )
    const { status, text } = await client.get(bucketName, KEY)
    const [current = '-'] = found
    t.same([status, status === 200 ? text.slice(0, 1) : '-'], [current === '-' ? 404 : 200, current])
    t.equal(
      (await client.call('StorageInfo')).storageInfo.Used,
      listed.reduce((sum, { size = 0 }) => sum + size, 0),
    )
    const large = listed.filter(({ size = 0 }) => size === LARGE.length).length
    await until('only the files of versions are left', () => files(join(folder, 'gateway', 'objects')).length === large)
  } finally {
    await services.stop()
  }
}

async function versionsOf(client: Client): Promise<Listed[]> {
  return (await client.call('ListObjectVersions', { bucketName })).versions
}

function files(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
}

function count(folder: string, part: 'gateway' | 'network', what: string): number {
  return countRows(join(folder, part, part === 'gateway' ? 'index.db' : 'network.db'), what)
}

afterAnyCrash('loses nothing, makes nothing twice and leaves nothing over', recordDeals, checkDeals)
afterAnyCrash('loses no version, makes none twice and leaves no body over', recordVersions, checkVersions)
