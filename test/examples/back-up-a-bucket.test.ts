import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { bytes } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { findClient, run, runAny } from '../support/programs/run.js'
import { startDealgate } from '../support/server/dealgate.js'

// A test of its own: the root test ends as soon as it is idle, also while a program runs.
t.test('a bucket is backed up and brought back', async (t) => {
  if (!(await findClient(t, 'aws'))) return
  const server = await startDealgate(t, { args: ['--config', 'examples/back-up-a-bucket/dealgate.json'] })
  const home = temporaryFolder(t)
  const folder = join(home, 'folder')
  await mkdir(join(folder, 'with a folder'), { recursive: true })
  await writeFile(join(folder, 'one.bin'), bytes('one', 300_000))
  await writeFile(join(folder, 'with a folder', 'two.txt'), 'two')
  const env = {
    HOME: home,
    AWS_ENDPOINT_URL: server.endpoint,
    AWS_ACCESS_KEY_ID: server.accessKey,
    AWS_SECRET_ACCESS_KEY: server.secretKey,
    AWS_DEFAULT_REGION: server.region,
    AWS_EC2_METADATA_DISABLED: 'true',
  }
  const script = 'examples/back-up-a-bucket/back-up.sh'
  const said = (await run(script, [folder, 'pictures'], { env, timeoutMs: 300_000 })).toString('utf8')
  t.match(said, /one\.bin is in a deal as baf\w+/)
  t.match(said, /with a folder\/two\.txt is in a deal as baf\w+/)
  t.match(said, /All bytes are identical\.\n$/)
  const { code } = await runAny(script, [folder, 'Not a bucket'], { env })
  t.not(code, 0, 'what goes wrong ends it')
})
