import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { temporaryFolder } from '../../support/content/folders.js'
import { until } from '../../support/waiting.js'
import { afterEachStep, CrashImages } from '../crash-images.js'
import { onPostgres } from '../engine.js'
import { type Client, connectTo, start } from './client.js'

const bucketName = 'bucket'
const KEY = 'key'
const LARGE = 100_000

/** What a client knows: the versions of the key from the newest, by their bodies; `-` is a delete marker. */
interface Image {
  readonly folder: string
  readonly step: string
  /** Before and after the change under way, or twice the same. */
  readonly possible: readonly (readonly string[])[]
}

interface Listed {
  readonly versionId: string
  readonly isLatest: boolean
  readonly deleteMarker?: true
  readonly size?: number
}

t.setTimeout(600_000)

t.test(
  'a crash after any step loses no version, makes none twice and leaves no body over',
  { skip: onPostgres && 'on SQLite' },
  async (t) => {
    const images = await record(t)
    t.comment(`${images.length} crashes`)
    t.ok(images.length > 13, 'more than changes')
    for (const [index, image] of images.entries()) await t.test(`${index}: ${image.step}`, (t) => check(t, image))
  },
)

async function record(t: Test): Promise<Image[]> {
  const data = temporaryFolder(t)
  const crashes = new CrashImages(data, temporaryFolder(t))
  const services = await start(data)
  t.teardown(() => services.stop())
  const client = await connectTo(services)
  await client.call('MakeBucket', { bucketName })
  const images: Image[] = []
  let step = ''
  let possible: string[][] = [[]]
  const look = (): void => {
    const folder = crashes.take()
    if (folder !== undefined && step !== '') images.push({ folder, step, possible })
  }
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
  const steps: [string, () => Promise<unknown>, string[]][] = [
    ['an object without versioning', put('a', LARGE), ['a']],
    ['versioning', versioning('Enabled'), ['a']],
    ['a version over the null version', put('b', LARGE), ['b', 'a']],
    ['one in the index', put('c', 10), ['c', 'b', 'a']],
    ['a marker', remove, ['-', 'c', 'b', 'a']],
    ['the marker goes', removeAt(0), ['c', 'b', 'a']],
    ['the current version goes', removeAt(0), ['b', 'a']],
    ['suspension', versioning('Suspended'), ['b', 'a']],
    ['a null version', put('d', LARGE), ['d', 'b']],
    ['another in its place', put('e', LARGE), ['e', 'b']],
    ['a null marker', remove, ['-', 'b']],
    ['a version below goes', removeAt(1), ['-']],
    ['and the last one', removeAt(0), []],
  ]
  await afterEachStep(look, async () => {
    for (const [name, run, after] of steps) {
      step = name
      possible = [possible.at(-1) ?? [], after]
      await run()
      possible = [after]
    }
    await services.stop()
  })
  return images
}

async function check(t: Test, { folder, possible }: Image): Promise<void> {
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
    const large = listed.filter(({ size = 0 }) => size === LARGE).length
    await until('only the files of versions are left', () => files(folder) === large)
  } finally {
    await services.stop()
  }
}

async function versionsOf(client: Client): Promise<Listed[]> {
  return (await client.call('ListObjectVersions', { bucketName })).versions
}

function files(folder: string): number {
  const entries = readdirSync(join(folder, 'gateway', 'objects'), { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).length
}
