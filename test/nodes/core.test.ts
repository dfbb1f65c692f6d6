import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { otherNodes } from '../support/programs/installed-package.js'
import { missing, run, runAny } from '../support/programs/run.js'

/**
 * The core of the suite on the other versions of Node.js that are supported: servers in one process, their S3
 * operations, signatures, state and HTTP. A few seconds for each version; the whole suite runs on one.
 */
const CORE = [
  's3/common',
  's3/get-object',
  's3/range',
  's3/copy-object',
  's3/complete-multipart-upload',
  's3/post-object',
  'auth/authenticate',
  'server/embedding',
  'state/bucket-settings',
]

const nodes = otherNodes()
const skip = nodes.length === 0 && missing('DEALGATE_NODES names no other Node.js')

t.test('the core of the suite', { skip }, async (t) => {
  const results = temporaryFolder(t)
  for (const node of nodes) {
    const version = String(await run(node, ['--version'])).trim()
    const files = CORE.map((file) => `dist/test/${file}.test.js`)
    const args = ['dist/test/run.js', '--jobs=2', `--results=${results}`, ...files]
    const { code, stdout } = await runAny(node, args, { timeoutMs: 600_000 })
    const output = String(stdout)
    for (const file of files) t.match(output, new RegExp(`^ok \\d+ - ${file} `, 'm'), `Node.js ${version}, ${file}`)
    const [, passed, failed] = /^# \{ total: \d+, pass: (\d+), fail: (\d+)/m.exec(output) ?? []
    t.ok(Number(passed) > 0 && failed === '0', `${passed} checks passed, ${failed} failed`)
    t.equal(code, 0)
    if (code !== 0) t.comment(output)
  }
})
