import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { startGateway } from '../support/gateway/embedded.js'
import { startDealgate } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'

const DIST = pathToFileURL(resolve('dist')).href

/** Runs the compiled modules in place of the bundle, whose files hold several each, and lists those that are loaded. */
const HOOK = `import { appendFileSync } from 'node:fs'
export async function resolve(specifier, context, next) {
  const found = await next(specifier, context)
  return found.url === '${DIST}/app/main.js' ? { ...found, url: '${DIST}/cli/main.js' } : found
}
export async function load(url, context, next) {
  appendFileSync(process.env.LOADED_MODULES, url + '\\n')
  return next(url, context)
}
`

/** Starts `dealgate serve`. `loaded` are the modules that it has loaded by now: paths below `dist`, and packages. */
async function startObserved(t: Test, options: Parameters<typeof startDealgate>[1]) {
  const folder = temporaryFolder(t)
  const list = join(folder, 'loaded')
  writeFileSync(join(folder, 'hook.mjs'), HOOK)
  const register = join(folder, 'register.mjs')
  writeFileSync(register, "import { register } from 'node:module'\nregister('./hook.mjs', import.meta.url)\n")
  const NODE_OPTIONS = `--conditions=dealgate-source --import=${pathToFileURL(register)}`
  const server = await startDealgate(t, { ...options, env: { NODE_OPTIONS, LOADED_MODULES: list } })
  const nameOf = (url: string) =>
    url.startsWith(DIST) ? url.slice(DIST.length + 1) : (/.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? url)
  const loaded = () => [...new Set(readFileSync(list, 'utf8').trim().split('\n').map(nameOf))]
  return { server, loaded }
}

/** The defaults and forms of options, which the command line has for all, and what starts the services in a thread. */
const OPTIONS =
  /^plugins\/[a-z]+\/(defaults|webhooks)\.js$|^services\/(gateway\/(limits|features|legacy\/quirks)|store\/s3-location|payment\/words|start-in-worker|log)\.js$/

const isOther = (name: string) => /^(plugins|services)\//.test(name) && !OPTIONS.test(name)

/** Libraries that plugins and the embedded services alone use. */
const HEAVY = /^(hyparquet.*|csv-.*|croner|express|nodemailer|multiformats|ipfs-.*|@ipld\/.*|@noble\/.*|pg)$/

const CONFIGURATION = `<InventoryConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Destination><S3BucketDestination>
<Bucket>arn:aws:s3:::photos</Bucket><Format>Parquet</Format><Prefix>lists</Prefix></S3BucketDestination></Destination>
<IsEnabled>false</IsEnabled><Id>all</Id><IncludedObjectVersions>Current</IncludedObjectVersions>
<Schedule><Frequency>Daily</Frequency></Schedule></InventoryConfiguration>`

t.test('a server loads no code of plugins and services that it does not run', async (t) => {
  const gateway = await startGateway(t, 'full')
  const { server, loaded } = await startObserved(t, { gateway, args: ['--no-plugins'] })
  await send(server, { method: 'PUT', target: '/photos' })
  await send(server, { method: 'PUT', target: '/photos/a', body: Buffer.from('a') })
  t.equal((await send(server, { method: 'GET', target: '/photos/a' })).body.toString(), 'a')
  const names = loaded()
  t.ok(names.includes('src/server/handle.js'), 'the list is that of the server')
  t.ok(names.length > 200, `${names.length} modules and packages`)
  t.same(names.filter(isOther), [])
  t.same(
    names.filter((name) => HEAVY.test(name)),
    [],
  )
  await server.stop()
})

t.test('a plugin loads the library of a format when a file has it', async (t) => {
  const gateway = await startGateway(t, 'full')
  const { server, loaded } = await startObserved(t, { gateway, args: ['--plugin', 'inventory'] })
  t.same(
    loaded().filter((name) => /^plugins\/(deal|pay|task|paid)\//.test(name)),
    [],
    'plugins that the list does not name',
  )
  t.ok(loaded().includes('plugins/inventory/files.js'))
  t.same(
    loaded().filter((name) => HEAVY.test(name)),
    [],
  )
  await send(server, { method: 'PUT', target: '/photos' })
  const put = { method: 'PUT', target: '/photos?inventory&id=all', body: Buffer.from(CONFIGURATION) } as const
  t.equal((await send(server, put)).status, 200)
  const order = Buffer.from(JSON.stringify({ Id: 'all' }))
  const written = await send(server, { method: 'POST', target: '/photos?x-inventory=', body: order })
  t.equal(written.status, 200, written.body.toString())
  t.ok(loaded().includes('hyparquet-writer'))
  await server.stop()
})

/** The endpoints of the platform and the payment API, and what reads requests for deals: not for a store of objects. */
const ON_REQUEST =
  /^services\/((platform|payment)\/(app|route|routes\/.*)|rest\/(app|routes|openapi)|platform\/csv|network\/pack\/.*(directory|car-reader|unixfs))\.js$/
const LIBRARIES = /^(express|csv-.*|ipfs-.*|@ipld\/(car|dag-pb)|@multiformats\/murmur3|xml2js|nodemailer|pg)$/

t.test('embedded services load their applications at the first request for one', async (t) => {
  const { server, loaded } = await startObserved(t, { args: ['--no-plugins'] })
  await send(server, { method: 'PUT', target: '/photos' })
  await send(server, { method: 'PUT', target: '/photos/a', body: Buffer.from('a') })
  t.equal((await send(server, { method: 'GET', target: '/photos/a' })).body.toString(), 'a')
  t.ok(loaded().includes('services/platform/platform.js'), 'the list is also that of the thread of the services')
  t.same(
    loaded().filter((name) => ON_REQUEST.test(name) || LIBRARIES.test(name)),
    [],
  )
  // Of several at once, each is answered.
  const live = await Promise.all([1, 2, 3].map(() => fetch(`${server.platform}/-/live`)))
  t.same(
    live.map(({ status }) => status),
    [200, 200, 200],
  )
  t.ok(loaded().includes('services/platform/app.js'))
  t.notOk(loaded().includes('services/payment/app.js'), 'the other application is not loaded')
  await server.stop()
})
