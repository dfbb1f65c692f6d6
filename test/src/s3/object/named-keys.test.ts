import { existsSync, readFileSync } from 'node:fs'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Decrypter } from 'age-encryption'
import t from 'tap'
import { newIdentity, recipientOf } from '../../../../src/objects/encryption/age-header.js'
import { KeyCommand } from '../../../../src/objects/encryption/key-command.js'
import { linesOf } from '../../../../src/objects/encryption/key-file.js'
import { bytes } from '../../../support/content/content.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { GatewayUser } from '../../../support/gateway/gateway-user.js'
import { bodyOf } from '../../../support/programs/sdk.js'
import { runCli } from '../../../support/server/cli.js'
import { startInProcess } from '../../../support/server/in-process.js'
import { keptLog } from '../../../support/server/kept-log.js'
import { until } from '../../../support/waiting.js'

const CHUNK = 64 * 1024

function named(SSEKMSKeyId?: string) {
  return { ServerSideEncryption: 'aws:kms', ...(SSEKMSKeyId && { SSEKMSKeyId }) } as const
}

async function opens(identity: string, file: Buffer): Promise<boolean> {
  const decrypter = new Decrypter()
  decrypter.addIdentity(identity)
  return decrypter.decrypt(file).then(
    () => true,
    () => false,
  )
}

t.test('keys with names', async (t) => {
  const folder = temporaryFolder(t)
  const [own, archive, medical, recovery] = await Promise.all([1, 2, 3, 4].map(() => newIdentity()))
  const keys = join(folder, 'keys')
  const lines = [
    await linesOf(own ?? ''),
    await linesOf(archive ?? '', 'archive'),
    await linesOf(medical ?? '', 'medical'),
  ]
  await writeFile(keys, lines.join(''))
  const options = { encryptionKeys: keys, encryptionRecipient: [await recipientOf(recovery ?? '')] }
  const server = await startInProcess(t, 'full', options)
  const { s3 } = server
  const user = new GatewayUser(server.gateway)
  await user.login()
  const Bucket = 'named'
  await s3.createBucket({ Bucket })
  const storedAt = async (Key: string) => (await user.get(Bucket, encodeURIComponent(Key))).body

  const first = { Bucket, Key: 'first' }
  const content = bytes('first', CHUNK)
  t.match(await s3.putObject({ ...first, Body: content, ...named('archive'), BucketKeyEnabled: true }), {
    ...{ ServerSideEncryption: 'aws:kms', SSEKMSKeyId: 'archive', BucketKeyEnabled: true },
  })
  const file = await storedAt('first')
  t.same(
    await Promise.all([own, archive, medical, recovery].map((key) => opens(key ?? '', file))),
    [false, true, false, true],
    'the key of the name and the recovery key open it, and no other',
  )

  t.test('without a name, the key of the server', async (t) => {
    const at = { Bucket, Key: 'no name' }
    t.match(await s3.putObject({ ...at, Body: 'x', ...named() }), { SSEKMSKeyId: 'aws/s3' })
    t.ok(await opens(own ?? '', await storedAt(at.Key)))
    t.equal((await bodyOf(s3, at)).toString(), 'x')
  })

  t.test('what is refused', async (t) => {
    const at = { Bucket, Key: 'refused', Body: 'x' }
    const missing = { name: 'KMS.NotFoundException', $metadata: { httpStatusCode: 400 } }
    await t.rejects(s3.putObject({ ...at, ...named('absent') }), missing)
    await t.rejects(s3.putObject({ ...at, ...named('-rf') }), missing)
    await t.rejects(s3.createMultipartUpload({ Bucket, Key: 'refused', ...named('absent') }), missing)
    await t.rejects(s3.copyObject({ Bucket, Key: 'refused', CopySource: 'named/no name', ...named('absent') }), missing)
    await t.rejects(s3.putObject({ ...at, SSEKMSKeyId: 'archive' }), { name: 'InvalidArgument' })
    await t.rejects(s3.putObject({ ...at, ServerSideEncryption: 'AES256', SSEKMSKeyId: 'archive' }), {
      name: 'InvalidArgument',
    })
    await t.rejects(s3.headObject({ Bucket, Key: 'refused' }), { name: 'NotFound' })
  })

  t.test('copies', async (t) => {
    const to = (Key: string) => ({ Bucket, Key, CopySource: 'named/first' })
    t.match(await s3.copyObject(to('copy')), { ServerSideEncryption: 'aws:kms', SSEKMSKeyId: 'archive' })
    t.match(await s3.copyObject({ ...to('copy'), ...named('medical') }), { SSEKMSKeyId: 'medical' })
    t.ok(await opens(medical ?? '', await storedAt('copy')))
    t.ok((await bodyOf(s3, { Bucket, Key: 'copy' })).equals(content))
    t.match(await s3.copyObject({ ...to('copy'), ServerSideEncryption: 'AES256' }), {
      ServerSideEncryption: 'AES256',
    })
  })

  t.test('the default of a bucket, and policies', async (t) => {
    const byDefault = (key?: string, BucketKeyEnabled?: boolean) => ({
      Bucket: 'by-default',
      ServerSideEncryptionConfiguration: {
        Rules: [
          {
            ApplyServerSideEncryptionByDefault: { SSEAlgorithm: 'aws:kms' as const, KMSMasterKeyID: key },
            BucketKeyEnabled,
          },
        ],
      },
    })
    await s3.createBucket({ Bucket: 'by-default' })
    await s3.putBucketEncryption(byDefault('medical', true))
    const { ServerSideEncryptionConfiguration: found } = await s3.getBucketEncryption({ Bucket: 'by-default' })
    t.match(found, byDefault('medical', true).ServerSideEncryptionConfiguration)
    const at = { Bucket: 'by-default', Key: 'k', Body: 'x' }
    t.match(await s3.putObject(at), { SSEKMSKeyId: 'medical', BucketKeyEnabled: true })
    t.match(
      await s3.putObject({ ...at, ...named() }),
      { SSEKMSKeyId: 'medical' },
      'aws:kms alone is the key of the bucket',
    )
    t.match(await s3.putObject({ ...at, ...named('archive') }), { SSEKMSKeyId: 'archive' })
    t.match(await s3.putObject({ ...at, ServerSideEncryption: 'AES256' }), { ServerSideEncryption: 'AES256' })
    t.match(await s3.copyObject({ Bucket: 'by-default', Key: 'c', CopySource: 'by-default/k' }), {
      SSEKMSKeyId: 'medical',
    })
    await s3.putBucketEncryption(byDefault('absent'))
    await t.rejects(s3.putObject(at), { name: 'KMS.NotFoundException' })
    await s3.putBucketEncryption(byDefault())
    t.match(await s3.putObject(at), { SSEKMSKeyId: 'aws/s3' })
    const onlyMedical = {
      Effect: 'Deny',
      Principal: '*',
      Action: 's3:PutObject',
      Resource: 'arn:aws:s3:::by-default/*',
      Condition: { StringNotEquals: { 's3:x-amz-server-side-encryption-aws-kms-key-id': 'medical' } },
    }
    const Policy = JSON.stringify({ Version: '2012-10-17', Statement: [onlyMedical] })
    await s3.putBucketPolicy({ Bucket: 'by-default', Policy })
    await t.rejects(s3.putObject({ ...at, ...named('archive') }), { name: 'AccessDenied' })
    await s3.putObject({ ...at, ...named('medical') })
    const parts = { Bucket: 'by-default', Key: 'parts' }
    const { UploadId } = await s3.createMultipartUpload({ ...parts, ...named('medical') })
    await s3.uploadPart({ ...parts, UploadId, PartNumber: 1, Body: 'x' })
    await s3.abortMultipartUpload({ ...parts, UploadId })
  })

  t.test('a public key with a name writes, and reads nothing', async (t) => {
    await writeFile(keys, `${await linesOf(own ?? '')}# name: drop\n${await recipientOf(archive ?? '')}\n`)
    await server.restart()
    const at = { Bucket, Key: 'dropped' }
    await s3.putObject({ ...at, Body: 'x', ...named('drop') })
    await t.rejects(s3.getObject(at), { name: 'AccessDenied' })
    t.ok(await opens(archive ?? '', await storedAt('dropped')))
    await t.rejects(s3.getObject(first), { name: 'KMS.NotFoundException' })
  })
})

t.test('a program that holds the keys', async (t) => {
  const folder = temporaryFolder(t)
  const program = join(folder, 'vault')
  const asked = join(folder, 'asked')
  const [first, second] = await Promise.all([newIdentity(), newIdentity()])
  await writeFile(join(folder, 'a'), await linesOf(first))
  const script = [
    '#!/bin/sh',
    `echo "$1" >> ${asked}`,
    'case "$1" in',
    `vault/a) cat ${folder}/a ;;`,
    'broken) echo "no access, AGE-SECRET-KEY-1ABCDEF" >&2; exit 3 ;;',
    'chatty) echo "hello" ;;',
    'endless) yes ;;',
    'esac',
  ]
  await writeFile(program, `${script.join('\n')}\n`)
  await chmod(program, 0o600)
  await t.rejects(startInProcess(t, 'full', { encryptionCommand: program }), { message: /cannot be run/ })
  await chmod(program, 0o700)
  const server = await startInProcess(t, 'full', { encryptionCommand: program })
  const { s3 } = server
  const Bucket = 'vault'
  await s3.createBucket({ Bucket })
  await Promise.all(['1', '2', '3'].map((Key) => s3.putObject({ Bucket, Key, Body: Key, ...named('vault/a') })))
  for (const Key of ['1', '2', '3']) t.equal((await bodyOf(s3, { Bucket, Key })).toString(), Key)
  t.equal(await readFile(asked, 'utf8'), 'vault/a\n', 'it was asked once')

  await t.rejects(s3.putObject({ Bucket, Key: 'x', Body: 'x', ...named('absent') }), { name: 'KMS.NotFoundException' })
  for (const key of ['broken', 'chatty', 'endless'])
    await t.rejects(s3.putObject({ Bucket, Key: 'x', Body: 'x', ...named(key) }), { name: 'ServiceUnavailable' }, key)
  const why = server.lines.flatMap((line) => (line.keyId === 'broken' ? [line.why] : []))
  t.match(why, ['it has ended with code 3: no access, [key]\n'])

  await writeFile(join(folder, 'a'), `${await linesOf(first)}${await linesOf(second)}`)
  await server.restart()
  const user = new GatewayUser(server.gateway)
  await user.login()
  await s3.putObject({ Bucket, Key: '4', Body: '4', ...named('vault/a') })
  const { body } = await user.get(Bucket, '4')
  t.same([await opens(first, body), await opens(second, body)], [false, true], 'the last key encrypts')
  t.equal((await bodyOf(s3, { Bucket, Key: '1' })).toString(), '1', 'and the first still decrypts')
})

t.test('a program that gives no answer is ended, with what it has started', async (t) => {
  const folder = temporaryFolder(t)
  const program = join(folder, 'stuck')
  await writeFile(program, `#!/bin/sh\nsleep 1000 &\necho $! > ${folder}/pid\nwait\n`, { mode: 0o700 })
  const { log } = keptLog()
  const command = new KeyCommand(program, log, 2000)
  await t.rejects(command.find('x'), { name: 'S3Error', code: 'ServiceUnavailable' })
  // On a busy machine it may have ended before it began.
  if (!existsSync(join(folder, 'pid'))) return
  const pid = Number(await readFile(join(folder, 'pid'), 'utf8'))
  const isGone = () => !existsSync(`/proc/${pid}`) || readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')
  await until('it has ended', isGone)
})

t.test('names that clients make up leave the keys of a program where they are', async (t) => {
  const folder = temporaryFolder(t)
  const [program, asked] = [join(folder, 'vault'), join(folder, 'asked')]
  await writeFile(join(folder, 'good'), await linesOf(await newIdentity()))
  const script = `#!/bin/sh\necho "$1" >> ${asked}\n[ "$1" = good ] && cat ${folder}/good\nexit 0\n`
  await writeFile(program, script, { mode: 0o700 })
  const command = new KeyCommand(program, keptLog().log)
  t.ok(await command.find('good'))
  for (let i = 0; i < 120; i++) t.equal(await command.find(`none-${i}`), undefined)
  t.ok(await command.find('good'))
  t.equal((await readFile(asked, 'utf8')).match(/^good$/gm)?.length, 1)
})

t.test('commands make and list keys with names', async (t) => {
  const server = await startInProcess(t, 'full')
  const { s3 } = server
  await s3.createBucket({ Bucket: 'commands' })
  const run = (...words: string[]) => runCli(['encryption', ...words, '--data', server.data])
  const made = await run('rotate', '--name', 'archive')
  t.equal(made.code, 0, made.stderr)
  t.not((await run('rotate', '--name', 'no name')).code, 0)
  await until('the key is in use', () =>
    s3.putObject({ Bucket: 'commands', Key: 'a', Body: 'a', ...named('archive') }).then(
      () => true,
      () => false,
    ),
  )
  await run('rotate', '--name', 'archive')
  const { stdout } = await run('list')
  t.match(
    stdout,
    /^age1\S+ {2}encrypts and decrypts\nage1\S+ {2}decrypts {2}archive\nage1\S+ {2}encrypts and decrypts {2}archive\n$/,
  )
  t.notMatch(stdout, 'SECRET')
  const { stdout: own } = await run('recipients')
  t.equal(own.trim(), stdout.split(' ')[0])
  const exported = join(temporaryFolder(t), 'exported')
  await writeFile(exported, (await run('export')).stdout)
  const elsewhere = temporaryFolder(t)
  const added = await runCli(['encryption', 'add', exported, '--data', elsewhere])
  t.match(added.stdout, /Added 3 of 3/)
  t.match((await runCli(['encryption', 'list', '--data', elsewhere])).stdout, / {2}encrypts and decrypts {2}archive\n/)
  t.equal((await bodyOf(s3, { Bucket: 'commands', Key: 'a' })).toString(), 'a')
})
