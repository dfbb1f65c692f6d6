import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openKeystore } from '../../cli/keystore.js'
import { bytes } from '../support/content/content.js'
import { temporaryFolder } from '../support/content/folders.js'
import { writeKeystore } from '../support/content/keystore.js'
import { findClient, run, runAny } from '../support/programs/run.js'
import { CLI, runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { signedRequest } from '../support/sign/signed-request.js'
import { until } from '../support/waiting.js'

t.setTimeout(600_000)

const SCRIPT = 'examples/pay-for-storage/pay.sh'
const BUCKET = 'letters'
const KEY = 'letter.bin'
const PASSWORD = 'correct horse'

/** What the wallet has at first, millionths of a coin. */
const COINS = 10_000_000

t.test('a file is uploaded, paid, stored by a provider, and the bill adds up', async (t) => {
  if (!(await findClient(t, 'aws'))) return
  const server = await startDealgate(t, { args: ['--config', 'examples/pay-for-storage/dealgate.json'] })
  const { endpoint, accessKey, secretKey, payment, data } = server
  const home = temporaryFolder(t)
  const env = {
    HOME: home,
    DEALGATE: [process.execPath, ...CLI].join(' '),
    DEALGATE_DATA: data,
    DEALGATE_PAYMENT_PORT: new URL(payment).port,
    AWS_ENDPOINT_URL: endpoint,
    AWS_ACCESS_KEY_ID: accessKey,
    AWS_SECRET_ACCESS_KEY: secretKey,
    AWS_DEFAULT_REGION: 'us-east-1',
    AWS_EC2_METADATA_DISABLED: 'true',
  }
  const options = { env, timeoutMs: 300_000, input: `${PASSWORD}\n` }
  const script = async (...args: string[]) => (await run(SCRIPT, args, options)).toString('utf8')
  const pay = (...coins: string[]) => runAny(SCRIPT, ['pay', BUCKET, KEY, ...coins], options)
  const wallet = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCli(['wallet', ...args, '--data', data, '--print', 'json'])
    if (code !== 0) throw new Error(stderr)
    return stdout
  }

  await script('wallet')
  // Each payment opens it.
  const keystore = join(data, 'wallet.json')
  writeKeystore(keystore, PASSWORD, (await openKeystore(keystore, PASSWORD)).secretKey)
  writeFileSync(join(home, KEY), bytes('letter', 30_000))
  const stored = /^Upload: \d+\nFor payments: \S+\nReadable at: (\S+)\n$/.exec(
    await script('store', join(home, KEY), BUCKET),
  )
  const content = Buffer.from(await (await fetch(String(stored?.[1]))).arrayBuffer())
  t.ok(content.equals(bytes('letter', 30_000)))

  t.match(await pay(), { code: 1, stderr: /Fund the wallet first/ })
  await wallet('fund', '10')
  t.match(await pay('0.000001'), { code: 1, stderr: /pay_amount must be at least/ }, 'underpaid')
  t.match(await pay(), { code: 0 })
  t.match(await pay('0.5'), { code: 1, stderr: /paid already/ }, 'paid twice')
  const keys = { accessKeyId: accessKey, secretAccessKey: secretKey }
  // Without a program for it: one takes seconds on a busy machine.
  const request = { method: 'GET', path: `/${BUCKET}/${KEY}`, query: { 'x-pay': '', format: 'json' } }
  await until('the upload is paid', async () => {
    const { body } = await signedRequest(endpoint, keys, request)
    return JSON.parse(body).Uploads[0].Status === 'Success'
  })
  const shown = await script('show', BUCKET, KEY)
  t.match(shown, /^Deal: t01000\s+StorageDealActive\s+Success$/m)
  const [paid = 0, unlocked = 0] = ['Paid', 'Unlocked'].map((name) =>
    Number(new RegExp(`^${name}: (\\d+)$`, 'm').exec(shown)?.[1]),
  )
  t.ok(unlocked > 0 && unlocked < paid, `${unlocked} of ${paid}`)
  const { balance } = JSON.parse(await wallet('balance'))
  t.equal(Math.round(Number(balance) * 1e6), COINS - unlocked, 'the rest came back')
})
