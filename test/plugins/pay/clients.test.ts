import { join } from 'node:path'
import t, { type Test } from 'tap'
import { NETWORK, newKeys } from '../../services/payment/payment-client.js'
import { sha256 } from '../../support/content/content.js'
import { awsVersions } from '../../support/programs/aws-cli.js'
import { findClient, run } from '../../support/programs/run.js'
import { type Dealgate, startDealgate } from '../../support/server/dealgate.js'
import { farFromMidnight } from '../../support/waiting.js'
import { jsonCommands } from '../describe/aws-model/json-commands.js'

for (const variant of ['a', 'b'] as const)
  t.test(`variant ${variant}: aws-cli and curl on the started program`, async (t) => {
    await farFromMidnight()
    const server = await startDealgate(t, { args: ['--payment-variant', variant] })
    const installed = await awsVersions(t)
    // To a client the variants differ in the wallet that calls name: the newest one shows it for the second.
    const versions = variant === 'a' ? installed : installed.slice(-1)
    for (const [i, { path }] of versions.entries()) await viaAws(t, server, path, { variant, bucket: `photos${i}` })
    const curl = await findClient(t, 'curl')
    if (curl) await viaCurl(t, server, curl, variant)
  })

interface Scene {
  readonly variant: 'a' | 'b'
  readonly bucket: string
}

async function viaAws(t: Test, server: Dealgate, path: string, { variant, bucket }: Scene): Promise<void> {
  const home = t.testdir()
  const owner = { accessKeyId: server.accessKey, secretAccessKey: server.secretKey }
  const aws = jsonCommands(t, path, { endpoint: server.endpoint, owner, home })
  const call = async (...args: string[]) => JSON.parse(await aws('dealgate', ...args))
  const model = join(home, 'aws-model.json')
  await aws('s3', 'cp', 's3://-/aws-model.json', model)
  await aws('configure', 'add-model', '--service-name', 'dealgate', '--service-model', `file://${model}`)
  const { address, sign } = newKeys()
  const wallet = variant === 'b' ? ['--wallet-address', address] : []
  if (variant === 'a') {
    const { Nonce } = await call('create-wallet-nonce', '--public-key-address', address)
    const proof = ['--nonce', Nonce, '--signature', sign(Nonce), '--public-key-address', address, '--network', NETWORK]
    t.match(await call('create-wallet-session', ...proof, '--store'), { Stored: true })
  }
  t.match(await call('get-system-config'), { Variant: variant.toUpperCase() })
  t.match(await call('get-host-info'), { CurrentUnixNano: /^\d{19}$/ })
  t.match(await call('get-exchange-rate'), { Rate: 500_000_000 })
  t.match(await call('pay-get-price-statistics'), { AveragePricePerGBPerYear: { Unit: 'FIL' } })
  await aws('s3api', 'create-bucket', '--bucket', bucket)
  const file = join(home, 'aws-model.json')
  await aws('s3api', 'put-object', '--bucket', bucket, '--key', 'model.json', '--body', file)
  const object = ['--bucket', bucket, '--key', 'model.json']
  const made = await call(
    'upload-object-to-ipfs',
    ...object,
    '--duration-days',
    '180',
    ...wallet,
    '--prefer',
    'wait=60',
  )
  t.match(made, { PayloadCid: /^Qm/ })
  const id = String(made.SourceFileUploadId)
  const direct = ['--duration-days', '200', '--file-name', 'direct.json', '--body', file, ...wallet]
  t.match(await call('upload-to-ipfs', ...direct), { PayloadCid: made.PayloadCid, DurationDays: 200 })
  t.match(await call('list-object-uploads', ...object), { Uploads: [{ WCid: made.WCid, Status: 'Pending' }] })
  t.match(await call('list-uploads', '--file-name', 'model', ...wallet), { Uploads: [{ FileName: 'model.json' }] })
  t.match(await call('get-payment-info', '--source-file-upload-id', id), { WCid: made.WCid, PayAmount: '' })
  t.match(await call('get-deal-detail', '--deal-id', '0', '--source-file-upload-id', id), { Deal: { WCid: made.WCid } })
  const mint = ['--tx-hash', '0x1', '--token-id', '7', '--mint-address', address]
  t.match(await call('record-mint', '--source-file-upload-id', id, ...mint), { TokenId: '7' })
  t.match(await call('list-billing', ...wallet), { Records: [] })
  const head = JSON.parse(await aws('s3api', 'head-object', ...object))
  t.match(head.Metadata, { 'pay-cid': made.PayloadCid, 'pay-upload-id': id })

  const read = async (key: string) => JSON.parse(await aws('s3', 'cp', `s3://-/pay/v1/${key}`, '-'))
  for (const key of ['system-config', 'host-info', 'exchange-rate', 'price-statistics'])
    t.type(await read(key), 'object')
  t.match(await read(`uploads/${id}/payment`), { WCid: made.WCid })
  const own = `wallets/${address}`
  t.match(await read(`${own}/uploads`), { Uploads: [{ FileName: 'direct.json' }, { TokenId: '7' }] })
  t.match(await read(`${own}/billing`), { Records: [] })
  t.match(await aws('s3', 'cp', `s3://-/pay/v1/${own}/billing.csv`, '-'), /^PayId,PayTxHash,PayAmount,/)
  const csv = await aws('s3', 'cp', `s3://-/pay/v1/${own}/uploads.csv`, '-')
  t.match(csv, /^SourceFileUploadId,[\s\S]*,model\.json,[\s\S]*,direct\.json,/)
  if (variant === 'a') {
    t.match(await aws('s3', 'cp', 's3://-/pay/v1/billing.csv', '-'), /^PayId,PayTxHash,PayAmount,/)
    t.equal(await aws('s3', 'cp', 's3://-/pay/v1/uploads.csv', '-'), csv)
    t.match(
      await aws('s3', 'ls', '--recursive', 's3://-/pay/v1/wallets/'),
      ` pay/v1/${own.toLowerCase()}/billing.csv\n`,
    )
    t.match(await aws('s3', 'ls', 's3://-/pay/v1/'), / billing\.csv\n/)
    t.match(await read('uploads'), { Uploads: [{ FileName: 'direct.json' }, { TokenId: '7' }] })
    t.match(await read('billing'), { Records: [] })
  }
}

async function viaCurl(t: Test, server: Dealgate, path: string, variant: 'a' | 'b'): Promise<void> {
  const signing = ['--aws-sigv4', `aws:amz:${server.region}:s3`, '--user', `${server.accessKey}:${server.secretKey}`]
  const curl = async (target: string, ...args: string[]) =>
    (await run(path, ['-sS', '--fail-with-body', ...signing, ...args, `${server.endpoint}${target}`])).toString()
  const { address, sign } = newKeys()
  if (variant === 'a') {
    const { Nonce } = JSON.parse(await curl('/-/pay/v1/wallet/nonce', '-d', `{"public_key_address":"${address}"}`))
    const session = { nonce: Nonce, signature: sign(Nonce), public_key_address: address, network: NETWORK, Store: true }
    await curl('/-/pay/v1/wallet/session', '-d', JSON.stringify(session))
  }
  await curl('/notes', '-X', 'PUT')
  await curl('/notes/a.txt', '-X', 'PUT', '--data-binary', 'some data')
  const order = { duration: '200', ...(variant === 'b' && { wallet_address: address }) }
  t.match(
    await curl('/notes/a.txt?x-pay=', '-d', JSON.stringify(order)),
    '<PayUploadResult xmlns="urn:dealgate:pay:1">',
  )
  t.match(await curl('/notes/a.txt?x-pay='), '<Uploads><ObjectUpload><JobId>')
  const direct = `/-/pay/v1/uploads?duration-days=180&file-name=direct.txt${variant === 'b' ? `&wallet-address=${address}` : ''}`
  const digest = ['-H', `x-amz-content-sha256: ${sha256('direct')}`]
  t.match(
    JSON.parse(
      await curl(direct, ...digest, '-X', 'POST', '-T', join(t.testdir({ 'direct.txt': 'direct' }), 'direct.txt')),
    ),
    { FileSize: 6, DurationDays: 180 },
  )
  const query = variant === 'b' ? `?wallet-address=${address}` : ''
  const rows = await curl(`/-/pay/v1/uploads?format=csv${query.replace('?', '&')}`)
  t.match(rows, /^SourceFileUploadId,[\s\S]*,a\.txt,9,/)
  t.match(JSON.parse(await curl(`/-/pay/v1/uploads${query}`)), {
    Uploads: [{ FileName: 'direct.txt' }, { FileName: 'a.txt', DurationDays: 200 }],
  })
}
