import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { options } from '../../src/cli/config/options.js'
import { missing } from '../support/programs/run.js'

const ACTIONLINT = '.ci/clients/bin/actionlint'
const FORMS = '.github/ISSUE_TEMPLATE'

t.test(
  'actionlint accepts the workflows',
  { skip: !existsSync(ACTIONLINT) && missing('actionlint is not built: .ci/install-clients needs Go') },
  (t) => {
    // Without its calls of other linters, which a machine may or may not have.
    const { status, stdout } = spawnSync(ACTIONLINT, ['-shellcheck=', '-pyflakes=', '-no-color'], { encoding: 'utf8' })
    t.same([status, stdout], [0, ''])
    t.end()
  },
)

t.test('the workflows run what the repository has', (t) => {
  for (const name of readdirSync('.github/workflows')) {
    const text = readFileSync(join('.github/workflows', name), 'utf8')
    for (const [, path = ''] of text.matchAll(/(?:run: |file: )(\.?[a-z]+\/[\w./-]+)/g)) t.ok(existsSync(path), path)
  }
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } }
  const check = readFileSync('.github/workflows/check.yml', 'utf8')
  t.match(check, `node-version: ${engines.node.replace('>=', '')}`, 'the oldest Node.js is tried')
  t.end()
})

t.test('issue forms have the members that GitHub requires', (t) => {
  for (const name of readdirSync(FORMS).filter((name) => name !== 'config.yml')) {
    const form = parse(readFileSync(join(FORMS, name), 'utf8')) as {
      name: string
      description: string
      body: { type: string; id?: string; attributes: { label?: string; value?: string; options?: string[] } }[]
    }
    t.match(form, { name: /./, description: /./ }, name)
    const ids = form.body.flatMap(({ id }) => id ?? [])
    t.equal(new Set(ids).size, ids.length, `${name}: ids differ`)
    for (const { type, attributes } of form.body) {
      t.match(type, /^(markdown|input|textarea|dropdown|checkboxes)$/)
      t.ok(type === 'markdown' ? attributes.value : attributes.label, `${name}: ${type}`)
    }
  }
  t.end()
})

t.test('the dev container has what the tests need, and an editor formats as Biome does', (t) => {
  const read = (path: string) => JSON.parse(readFileSync(path, 'utf8'))
  const container = read('.devcontainer/devcontainer.json')
  const { scripts, engines } = read('package.json')
  const [install, ...further] = container.postCreateCommand.split(' && ')
  t.equal(install, 'npm install')
  for (const command of further) t.ok(command.replace(/^npm run /, '') in scripts, command)
  t.match(container.image, `:${/\d+/.exec(engines.node)}-`, 'the oldest Node.js')
  const ports = [options.port, options.consolePort, options.gatewayPort, options.platformPort, options.paymentPort]
  t.same(
    container.forwardPorts,
    ports.map((port) => port.default),
  )
  const { formatter } = read('biome.json')
  const [, all = ''] = readFileSync('.editorconfig', 'utf8').split(/^\[.*\]$/m)
  t.match(all, `max_line_length = ${formatter.lineWidth}\n`)
  t.match(all, `indent_style = ${formatter.indentStyle}\nindent_size = ${formatter.indentWidth}\n`)
  t.end()
})
