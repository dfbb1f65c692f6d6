import { join } from 'node:path'
import t from 'tap'
import { bytes, hashesOf, hashTree, writeTree } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { findClient, run, runFailing } from '../support/programs/run.js'
import { CLI } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { send, targetOf } from '../support/sign/send.js'
import { until } from '../support/waiting.js'

const SCRIPT = 'examples/offline-archive/archive.sh'
const BUCKET = 'archive'
const FILES = { 'one.bin': bytes('one', 30_000), 'with a folder/two.txt': Buffer.from('two') }

t.test('a folder is archived in an offline deal and brought back', async (t) => {
  if (!(await findClient(t, 'aws'))) return
  const server = await startDealgate(t, { args: ['--config', 'examples/offline-archive/dealgate.json'] })
  const home = temporaryFolder(t)
  const folder = join(home, 'folder')
  await writeTree(folder, FILES)
  const env = {
    HOME: home,
    DEALGATE: [process.execPath, ...CLI].join(' '),
    DEALGATE_PLATFORM_URL: server.platform,
    DEALGATE_GATEWAY_PORT: new URL(server.gateway).port,
    AWS_ENDPOINT_URL: server.endpoint,
    AWS_EC2_METADATA_DISABLED: 'true',
  }
  const script = async (args: string[], password?: string) => {
    const input = password === undefined ? {} : { input: `${password}\n` }
    return (await run(SCRIPT, args, { env, timeoutMs: 300_000, ...input })).toString('utf8')
  }
  const wrong = { env, timeoutMs: 300_000, input: 'wrong\n' }
  t.match(await runFailing(SCRIPT, ['store', folder, BUCKET], wrong), 'refuses the sign-in')
  await script(['store', folder, BUCKET], server.platformPassword)
  await until('the objects are only in deals', async () => {
    const heads = Object.keys(FILES).map((key) => send(server, { method: 'HEAD', target: targetOf(BUCKET, key) }))
    return (await Promise.all(heads)).every(({ headers }) => headers['x-amz-storage-class'] === 'DEEP_ARCHIVE')
  })
  const shown = await script(['show', BUCKET])
  t.match(shown, /^Task: Completed\n/)
  t.match(shown, /\nBid: t01000\s+0\.0000005\s/)
  t.match(shown, /\nBid: t01005\s+0\.0000008\s/)
  t.match(shown, /\nDeal: t01000\s+DealActive/, 'the best bid has won')
  t.match(shown, /Objects on the gateway: 0\nObjects only in deals: 2\n$/)
  const back = join(home, 'back')
  await script(['restore', BUCKET, back])
  t.same(await hashTree(back), hashesOf(FILES))
})
