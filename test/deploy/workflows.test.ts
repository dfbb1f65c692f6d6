import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { missing } from '../support/programs/run.js'

const ACTIONLINT = '.ci/clients/bin/actionlint'
t.test(
  'actionlint accepts the workflows',
  { skip: !existsSync(ACTIONLINT) && missing('actionlint is not built: .ci/install-clients needs Go') },
  async (t) => {
    // Without its calls of other linters, which a machine may or may not have.
    const { status, stdout } = spawnSync(ACTIONLINT, ['-shellcheck=', '-pyflakes=', '-no-color'], { encoding: 'utf8' })
    t.same([status, stdout], [0, ''])
  },
)

t.test('the workflows run what the repository has', async (t) => {
  for (const name of readdirSync('.github/workflows')) {
    const text = readFileSync(join('.github/workflows', name), 'utf8')
    for (const [, path = ''] of text.matchAll(/(?:run: |file: )(\.?[a-z]+\/[\w./-]+)/g)) t.ok(existsSync(path), path)
  }
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } }
  const check = readFileSync('.github/workflows/check.yml', 'utf8')
  t.match(check, `node-version: ${engines.node.replace('>=', '')}`, 'the oldest Node.js is tried')
})
