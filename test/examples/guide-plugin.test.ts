import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import t from 'tap'
import { runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { signedRequest } from '../support/sign/signed-request.js'

const page = readFileSync('docs/guides/write-a-plugin.md', 'utf8')

t.test('the first plugin of the guide runs from a folder of its own, as it stands there', async (t) => {
  const source = /```js\n(.*?)```/s.exec(page)?.[1] ?? ''
  t.equal(source.trim().split('\n').length, 15, 'fifteen lines')

  // Outside of this repository: nothing above the folder is called dealgate.
  const folder = mkdtempSync(join(tmpdir(), 'dealgate-test-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const repository = resolve('.')
  const content = { name: 'greet', type: 'module', dependencies: { dealgate: `file:${repository}` } }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(content))
  writeFileSync(join(folder, 'index.js'), source)
  // What `npm install` makes of a dependency on a folder, and `npm link` of any.
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(repository, join(folder, 'node_modules', 'dealgate'))

  const server = await startDealgate(t, { data: join(folder, 'data'), args: ['--plugin', folder] })
  const keys = { accessKeyId: server.accessKey, secretAccessKey: server.secretKey }
  const greet = (query: Record<string, string> = {}) =>
    signedRequest(server.endpoint, keys, { method: 'GET', path: '/-/greet/v1/greetings/world', query })
  const { status, body } = await greet()
  t.equal(status, 200)
  t.match(page, body.trim(), 'what the guide shows')
  t.match(await greet({ format: 'xml' }), { status: 200, body: /<Text>Hello, world!<\/Text>/ })
  await server.stop()

  const config = join(folder, 'dealgate.json')
  writeFileSync(config, JSON.stringify({ plugins: [{ use: '.', options: { word: 'Good morning' } }] }))
  const explained = await runCli(['plugin', 'list', '--explain', '--config', config])
  t.match(explained, {
    code: 0,
    stderr: '',
    stdout:
      /greet \(.*index\.js\)\n {2}Greets people\.\n {2}Options:\n {4}word {2}\[string; default "Hello"\] {2}The greeting\.\n/,
  })
  t.match(explained.stdout, /GetGreeting {2}GET \/-\/greet\/v1\/greetings\/\{Name\} {2}Greets a person by name\./)
  t.match(explained.stdout, /s3 \(always on\)/)

  const checked = await runCli(['plugin', 'check', '.', '--config', config])
  t.match(checked, { code: 0, stdout: /^greet: \d+ checks passed, 0 failed$/m }, checked.stdout)
})
