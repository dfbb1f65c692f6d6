import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { obtainPlugins } from '../../cli/built-in-plugins.js'
import { readConfig } from '../../cli/config/config.js'
import batch from '../../plugins/batch/index.js'
import { pluginProblems } from '../../src/plugins/check-plugins.js'
import { makePlugin } from '../../src/plugins/define-plugin.js'
import { temporaryFolder } from '../support/content/folders.js'
import { runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'

/** The requests of the plugins that are parts of S3, to an existing bucket. */
const REQUESTS = [
  { method: 'GET', target: '/photos?inventory' },
  { method: 'GET', target: '/photos?notification' },
  { method: 'GET', target: '/photos?x-usage=' },
  { method: 'GET', target: '/photos?x-quota=' },
  { method: 'GET', target: '/photos?prefix=&x-zip=' },
  { method: 'GET', target: '/-/batch/v1' },
  { method: 'GET', target: '/-/activity/v1' },
  { method: 'GET', target: '/-/upkeep/v1' },
  { method: 'GET', target: '/-/capabilities' },
  { method: 'GET', target: '/-/keys/v1' },
  { method: 'GET', target: '/-/accounts/v1' },
  { method: 'GET', target: '/-' },
] as const

/** Requests of S3 Control, which the plugin batch answers in part. */
const CONTROL = [
  ['POST', '/v20180820/jobs'],
  ['GET', '/v20180820/jobs'],
  ['GET', '/v20180820/jobs/j-1'],
  ['PUT', '/v20180820/jobs/j-1/tagging'],
  ['GET', '/v20180820/configuration/publicAccessBlock'],
] as const

t.test('a list of plugins leaves the standard ones on, and none is none', async (t) => {
  const data = temporaryFolder(t)
  const listed = await startDealgate(t, { data, args: ['--plugin', 'deal'] })
  await send(listed, { method: 'PUT', target: '/photos' })
  await send(listed, { method: 'PUT', target: '/photos/in-an-archive' })
  for (const request of REQUESTS) t.equal((await send(listed, request)).status, 200, request.target)
  const inventory =
    '<InventoryConfiguration><Id>all</Id><IsEnabled>true</IsEnabled><IncludedObjectVersions>All</IncludedObjectVersions><Schedule><Frequency>Weekly</Frequency></Schedule><Destination><S3BucketDestination><Bucket>arn:aws:s3:::photos</Bucket><Format>CSV</Format></S3BucketDestination></Destination></InventoryConfiguration>'
  const stored = await send(listed, { method: 'PUT', target: '/photos?inventory&id=all', body: Buffer.from(inventory) })
  t.equal(stored.status, 200, stored.body.toString())
  await send(listed, { method: 'PUT', target: '/films' })
  await listed.stop()

  const door = await startDealgate(t, { data, args: ['--no-plugins'] })
  await send(door, { method: 'PUT', target: '/photos/a', body: Buffer.from('kept') })
  const ofService = (target: string) => target.startsWith('/-')
  for (const request of REQUESTS.filter(({ target }) => !ofService(target))) {
    const { status, body } = await send(door, request)
    t.match({ status, body: body.toString() }, { status: 501, body: /NotImplemented/ }, request.target)
  }
  for (const request of REQUESTS.filter(({ target }) => ofService(target)))
    t.equal((await send(door, request)).status, request.target === '/-' ? 405 : 404, request.target)
  t.equal((await send(door, { method: 'GET', target: '/-/health' })).status, 200, 'the door says how it is by itself')
  for (const [method, path] of CONTROL) {
    const headers = { 'x-amz-account-id': '111122223333' }
    const { status, body } = await send(door, { method, target: path, headers })
    t.match({ status, body: body.toString() }, { status: 501, body: `${method} ${path} of S3 Control` })
  }
  for (const method of ['GET', 'PUT', 'DELETE']) {
    for (const query of ['inventory=1&id=a', 'notification=1']) {
      const { status } = await send(door, { method, target: `/photos?${query}` })
      t.equal(status, 501, `${method} of a sub-resource without its plugin is about nothing else: ${query}`)
    }
  }
  t.equal((await send(door, { method: 'GET', target: '/photos/a' })).body.toString(), 'kept')
  t.equal((await send(door, { method: 'GET', target: '/films' })).status, 200)
  const { stderr } = await door.stop()
  const warned = stderr.split('\n').filter((line) => line.includes('a plugin that does not run'))
  t.equal(warned.length, 1, 'the log names the bucket whose settings no plugin serves, once')
  t.match(warned[0], /"bucket":"photos","plugin":"inventory"/)

  const list = async (...args: string[]) => (await runCli(['plugin', 'list', ...args])).stdout
  t.match(await list('--plugin', 'deal'), /^batch +built-in +\d+ operations/m)
  t.match(await list('--no-plugins'), /^batch +built-in, off +\d+ operations/m)
})

t.test('their names and routes are refused for plugins of others', async (t) => {
  const create = () => ({ operations: batch().operations })
  t.match(pluginProblems([makePlugin({ name: 'batch', create }, undefined)]), [/has a reserved name/])
  t.ok(
    pluginProblems([makePlugin({ name: 'other', create }, undefined)]).some((problem) =>
      /must have a path below/.test(problem),
    ),
  )
  t.same(pluginProblems([batch()]), [])
  const copied = makePlugin({ name: 'other', create: () => ({ ...batch() }) }, undefined)
  t.match(pluginProblems([copied]), [/must have a path below/], 'a plugin that copies one is none of them')
  const folder = temporaryFolder(t)
  const entry = new URL('../../src/plugin.js', import.meta.url).href
  const claim = (name: string) =>
    `import { definePlugin } from ${JSON.stringify(entry)}\nexport default definePlugin({ name: '${name}', standard: true, create: () => ({ operations: [] }) })\n`
  for (const [name, problem] of [
    ['batch', /has a reserved name/],
    ['other', /claims to be a standard plugin/],
  ] as const) {
    const file = join(folder, `${name}.mjs`)
    writeFileSync(file, claim(name))
    t.match(await runCli(['plugin', 'list', '--plugin', file]), { code: 1, stderr: problem })
  }
})

t.test('notifications start first, and no option is lost, wherever a list names the plugins', async (t) => {
  const from = '.'
  const plugins = [
    { use: 'deal', from },
    { use: 'notifications', from, options: { firstRetryMs: 5 } },
    { use: 'keys', from, options: { stor: 1 } },
  ]
  const config = { ...readConfig({ env: {} }), plugins }
  const served = { owner: {} } as unknown as Parameters<typeof obtainPlugins>[1]
  await t.rejects(obtainPlugins(config, served), /option stor: no such option/)
  const found = await obtainPlugins({ ...config, plugins: plugins.slice(0, 2) }, served)
  t.equal(found[0]?.plugin.name, 'notifications')
  t.equal(found.filter(({ plugin }) => plugin.name === 'notifications').length, 1)
})
