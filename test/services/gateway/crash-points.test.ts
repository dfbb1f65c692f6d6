import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import t, { type Test } from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { afterEachStep, CrashImages } from '../crash-images.js'
import { onPostgres } from '../engine.js'
import { connectTo, start } from './client.js'
import { DealClient, type Envelope, UNTIL_ACTIVE } from './deal-client.js'

/** Of objects in the index and in files. */
const SMALL = Buffer.from('small')
const LARGE = randomBytes(100_000)
const OTHER = randomBytes(90_000)

t.setTimeout(1_200_000)

/** What a client knows. */
interface Known {
  /** By key; two while one takes the place of the other, undefined for none. */
  readonly bodies: Map<string, (Buffer | undefined)[]>
  /** By token: its deal, once that has been answered. */
  readonly deals: Map<string, string | undefined>
}

interface Image extends Known {
  readonly folder: string
  /** What was being done. */
  readonly step: string
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

t.test(
  'a crash after any step loses nothing, makes nothing twice and leaves nothing over',
  { skip: onPostgres && 'on SQLite' },
  async (t) => {
    const images = await record(t)
    t.comment(`${images.length} crashes`)
    for (const [index, image] of images.entries()) await t.test(`${index}: ${image.step}`, (t) => check(t, image))
  },
)

/** Does all there is to do with deals, one thing after the other. */
async function record(t: Test): Promise<Image[]> {
  const data = temporaryFolder(t)
  const crashes = new CrashImages(data, temporaryFolder(t))
  const services = await start(data, {}, { control: true })
  t.teardown(() => services.stop())
  const client = new DealClient(await connectTo(services))
  const known: Known = { bodies: new Map(), deals: new Map() }
  const images: Image[] = []
  let step = ''
  const look = (): void => {
    const folder = crashes.take()
    if (folder !== undefined) images.push({ folder, step, bodies: new Map(known.bodies), deals: new Map(known.deals) })
  }
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
  const steps: [string, () => Promise<unknown>][] = [
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
  await afterEachStep(look, async () => {
    for (const [name, run] of steps) {
      step = name
      await run()
    }
    step = 'stop'
    await services.stop()
  })
  return images
}

async function check(t: Test, { folder, bodies, deals }: Image): Promise<void> {
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

function files(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
}

function count(folder: string, part: 'gateway' | 'network', what: string): number {
  const db = new DatabaseSync(join(folder, part, part === 'gateway' ? 'index.db' : 'network.db'), { readOnly: true })
  try {
    return db.prepare(`SELECT count(*) AS count FROM ${what}`).get().count
  } finally {
    db.close()
  }
}
