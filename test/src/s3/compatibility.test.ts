import { readFileSync, writeFileSync } from 'node:fs'
import { type S3, S3ServiceException } from '@aws-sdk/client-s3'
import t from 'tap'
import { refusedOperations } from '../../../src/s3/refused.js'
import { allOperations } from '../../support/server/all-operations.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { modes } from '../../support/server/modes.js'
import { clientOf, contentOf, furnish } from './furnished.js'
import { calls, command, commands, answerOf as expected, type Target } from './s3-calls.js'

const DOCUMENT = 'docs/s3-compatibility.md'
const implemented = new Map(
  allOperations
    .filter((operation) => !refusedOperations.includes(operation))
    .map((operation) => [operation.name, operation]),
)

const reasons = new Map(
  await Promise.all(
    refusedOperations.map(async ({ name, run }) => {
      const refusal = await run(undefined as never, undefined as never).catch(({ message }) => String(message))
      return [name, /: (.+)\.$/.exec(String(refusal))?.[1]] as const
    }),
  ),
)

/** What the table says of an operation. */
function answerOf(name: string): { word: string; note: string } {
  const operation = implemented.get(name)
  if (operation) return { word: operation.partly === undefined ? 'supported' : 'partly', note: operation.partly ?? '' }
  const service = OTHER_SERVICES[name]
  if (service) return { word: 'refused', note: `\`${refusalOf(name)}\`: SDKs sign it for another service, ${service}` }
  const why = reasons.get(name)
  return { word: 'refused', note: `\`${refusalOf(name)}\`${why === undefined ? '' : `: ${why}`}` }
}

/** Operations in the SDK's client of S3 that belong to services with endpoints of their own. */
const OTHER_SERVICES: Readonly<Record<string, string>> = {
  ListDirectoryBuckets: 's3express',
  WriteGetObjectResponse: 's3-object-lambda',
}

function refusalOf(name: string): string {
  return name in OTHER_SERVICES ? 'AuthorizationHeaderMalformed' : 'NotImplemented'
}

function table(): string {
  const rows = [...commands.keys()].sort().map((name) => {
    const { word, note } = answerOf(name)
    const link = `[${name}](https://docs.aws.amazon.com/AmazonS3/latest/API/API_${name}.html)`
    return `| ${link} | ${word} | ${note} |`
  })
  return ['| operation | | how, or which error |', '| --- | --- | --- |', ...rows].join('\n')
}

t.test('the table in the documentation is that of the code', async (t) => {
  const text = readFileSync(DOCUMENT, 'utf8')
  const block = /(<!-- compatibility:.*-->\n)([\s\S]*?)(<!-- \/compatibility -->)/
  if (process.env.UPDATE_README === '1')
    writeFileSync(
      DOCUMENT,
      text.replace(block, (_, opening, __, closing) => `${opening}\n${table()}\n\n${closing}`),
    )
  else t.equal(block.exec(text)?.[2]?.trim(), table(), 'npm run tables writes it')
})

t.test('every operation has a call, and every operation of ours is one of S3 or of the service itself', async (t) => {
  t.same(Object.keys(calls).sort(), [...commands.keys()].sort())
  const own = allOperations.filter(({ name, on }) => !commands.has(name) && !/^\/(-|v20180820)/.test(on.path ?? ''))
  t.same(
    own.map(({ name }) => name).filter((name) => !NOT_IN_SDK.includes(name)),
    [],
  )
})

/** Requests of browsers, our own calls, and the calls of STS, which has a client of its own. */
const NOT_IN_SDK = [
  'PostObject',
  'PreflightBucket',
  'PreflightObject',
  'ShareObject',
  'ListBucketUsage',
  'CountBucket',
  'GetBucketQuota',
  'SetBucketQuota',
  'ListPlainObjects',
  'GetLifecycleState',
  'RewrapBucket',
  'CreateBucketInventory',
  'ListBucketInventories',
  'RewrapObject',
  'GetZip',
  'PostZip',
  'KeepZipSelection',
  'SecurityTokenService',
]

for (const mode of modes) {
  t.test(`each operation answers as the table says, ${mode}`, async (t) => {
    const data = t.testdir()
    const server = await startDealgate(t, { mode, data, args: ['--log-level', 'error', '--website-port', '0'] })
    const client = clientOf(t, server)
    const full = await furnish(client, 'full')
    await client.createBucket({ Bucket: 'empty' })
    const empty = { ...full, bucket: 'empty', key: 'nothing' }

    // It is refused before any gateway hears of it.
    if (mode === 'full')
      t.test('what is refused changes nothing', async (t) => {
        const before = contentOf(data)
        for (const name of commands.keys()) {
          if (implemented.has(name)) continue
          for (const target of [full, empty]) {
            t.equal(await codeOf(client, name, target), refusalOf(name), `${name} on ${target.bucket}`)
            t.equal(contentOf(data), before, `${name} on ${target.bucket}: everything is as before`)
          }
        }
      })

    t.test('what is supported is done', async (t) => {
      for (const name of Object.keys(calls)) {
        if (implemented.has(name)) t.equal(await codeOf(client, name, full), expected(name, mode), name)
      }
    })
  })
}

/** S3's error code; undefined for success. */
async function codeOf(client: S3, name: string, target: Target): Promise<string | undefined> {
  try {
    await client.send(command(name, target))
    return undefined
  } catch (error) {
    if (error instanceof S3ServiceException) return error.name
    throw new Error(`${name}: the client could not make sense of the answer`, { cause: error })
  }
}
