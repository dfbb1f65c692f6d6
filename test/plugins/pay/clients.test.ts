import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  CreateBucketCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import t, { type Test } from 'tap'
import { NETWORK, newKeys } from '../../services/payment/payment-client.js'
import { sha256 } from '../../support/content/content.js'
import { awsVersions } from '../../support/programs/aws-cli.js'
import { findClient, run } from '../../support/programs/run.js'
import { type Dealgate, startDealgate } from '../../support/server/dealgate.js'
import { farFromMidnight } from '../../support/waiting.js'
import { jsonCommands } from '../describe/json-commands.js'

for (const variant of ['a', 'b'] as const)
  t.test(`variant ${variant}: clients on the started program`, async (t) => {
    await farFromMidnight()
    const server = await startDealgate(t, { args: ['--payment-variant', variant] })
    // To a client the variants differ in the wallet that calls name, which curl shows.
    if (variant === 'a') for (const { path } of await awsVersions(t)) await viaAws(t, server, path)
    const curl = await findClient(t, 'curl')
    if (curl) await viaCurl(t, server, curl, variant)
  })

async function viaAws(t: Test, server: Dealgate, path: string): Promise<void> {
  const home = t.testdir()
  const owner = { accessKeyId: server.accessKey, secretAccessKey: server.secretKey }
  const aws = jsonCommands(t, path, { endpoint: server.endpoint, owner, home })
  const call = async (...args: string[]) => JSON.parse(await aws('dealgate', ...args))
  const file = join(home, 'aws-model.json')
  await aws('s3', 'cp', 's3://-/aws-model.json', file)
  await aws('configure', 'add-model', '--service-name', 'dealgate', '--service-model', `file://${file}`)
  const { address, sign } = newKeys()
  const { Nonce } = await call('create-wallet-nonce', '--public-key-address', address)
  const proof = ['--nonce', Nonce, '--signature', sign(Nonce), '--public-key-address', address, '--network', NETWORK]
  t.match(await call('create-wallet-session', ...proof, '--store'), { Stored: true })

  const { endpoint, region } = server
  const s3 = new S3Client({ endpoint, region, forcePathStyle: true, maxAttempts: 1, credentials: owner })
  t.teardown(() => s3.destroy())
  await s3.send(new CreateBucketCommand({ Bucket: 'photos' }))
  const at = { Bucket: 'photos', Key: 'model.json' }
  await s3.send(new PutObjectCommand({ ...at, Body: readFileSync(file) }))
  const object = ['--bucket', 'photos', '--key', 'model.json']
  const made = await call('upload-object-to-ipfs', ...object, '--duration-days', '180', '--prefer', 'wait=60')
  t.match(made, { PayloadCid: /^Qm/ })
  const id = String(made.SourceFileUploadId)
  const direct = ['--duration-days', '200', '--file-name', 'direct.json', '--body', file]
  t.match(await call('upload-to-ipfs', ...direct), { PayloadCid: made.PayloadCid, DurationDays: 200 })
  t.match(await call('list-object-uploads', ...object), { Uploads: [{ WCid: made.WCid, Status: 'Pending' }] })
  t.match(await call('list-uploads', '--file-name', 'model'), { Uploads: [{ FileName: 'model.json' }] })
  t.match(await call('get-deal-detail', '--deal-id', '0', '--source-file-upload-id', id), { Deal: { WCid: made.WCid } })
  const mint = ['--tx-hash', '0x1', '--token-id', '7', '--mint-address', address]
  t.match(await call('record-mint', '--source-file-upload-id', id, ...mint), { TokenId: '7' })
  const { Metadata } = await s3.send(new HeadObjectCommand(at))
  t.match(Metadata, { 'pay-cid': made.PayloadCid, 'pay-upload-id': id })

  const text = async (key: string) => {
    const { Body } = await s3.send(new GetObjectCommand({ Bucket: '-', Key: `pay/v1/${key}` }))
    return (await Body?.transformToString()) ?? ''
  }
  const read = async (key: string) => JSON.parse(await text(key))
  const names = async (Prefix: string, Delimiter?: string) => {
    const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket: '-', Prefix, Delimiter }))
    return Contents.map(({ Key }) => Key)
  }
  t.match(await read('system-config'), { Variant: 'A' })
  t.match(await read('host-info'), { CurrentUnixNano: /^\d{19}$/ })
  t.match(await read('exchange-rate'), { Rate: 500_000_000 })
  t.match(await read('price-statistics'), { AveragePricePerGBPerYear: { Unit: 'FIL' } })
  t.match(await read(`uploads/${id}/payment`), { WCid: made.WCid, PayAmount: '' })
  const own = `wallets/${address}`
  for (const of of ['', `${own}/`]) {
    t.match(await read(`${of}uploads`), { Uploads: [{ FileName: 'direct.json' }, { TokenId: '7' }] })
    t.match(await read(`${of}billing`), { Records: [] })
    t.match(await text(`${of}billing.csv`), /^PayId,PayTxHash,PayAmount,/)
    t.match(await text(`${of}uploads.csv`), /^SourceFileUploadId,[\s\S]*,model\.json,[\s\S]*,direct\.json,/)
  }
  t.ok((await names('pay/v1/wallets/')).includes(`pay/v1/${own.toLowerCase()}/billing.csv`))
  t.ok((await names('pay/v1/', '/')).includes('pay/v1/billing.csv'))
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
