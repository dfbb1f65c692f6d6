import t from 'tap'
import { missing, run, runAny } from '../support/programs/run.js'
import { otherNodes } from './installed-package.js'

/**
 * The core of the suite on the other versions of Node.js that are supported: servers in one process, their S3
 * operations, signatures, state and HTTP. A few seconds for each version; the whole suite runs on one.
 */
const CORE = [
  ...['s3/object/get-object', 's3/bucket/post-object', 's3/multipart/complete-multipart-upload'],
  ...['auth/authenticate', 'server/embedding', 'state/bucket-settings'],
]

const nodes = otherNodes()
const skip = nodes.length === 0 && missing('DEALGATE_NODES names no other Node.js')

t.test('the core of the suite', { skip }, async (t) => {
  for (const node of nodes) {
    const version = String(await run(node, ['--version'])).trim()
    for (const name of CORE) {
      const file = `dist/test/src/${name}.test.js`
      const args = ['--conditions=dealgate-source', file]
      const { code, stdout } = await runAny(node, args, { timeoutMs: 600_000, env: { TAP_TIMEOUT: '600' } })
      t.equal(code, 0, `Node.js ${version}, ${file}`)
      t.match(String(stdout), /^# \{ total: [1-9]\d*, pass: [1-9]/m, 'it has tests')
      if (code !== 0) t.comment(String(stdout))
    }
  }
})
