import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { sign } from '../../test/suites/sign.js'
import { inTurn, ok } from './large.js'
import { type Cost, measure, median } from './measure.js'
import type { Target } from './target.js'
import { download, upload } from './wire.js'

const GIB = 1024 ** 3
const BUCKET = 'private'
const RULE =
  '<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>'

/** Requests for an object of 1 KiB in one run. */
const SMALL = 500

/** What encryption costs: the same object into a bucket with and without it, and the program `age` on as many bytes. */
export async function encryption(target: Target, rounds: number, size: number): Promise<void> {
  await encryptedBucket(target)
  const kinds = { plain: 'bench', encrypted: BUCKET }
  const work = {
    [`PUT ${size / 2 ** 20} MiB`]: (bucket: string) =>
      ok(upload(target.proxy, target.s3('PUT', 'object', bucket), {}, size)),
    [`GET ${size / 2 ** 20} MiB`]: (bucket: string) =>
      ok(download(target.proxy, target.s3('GET', 'object', bucket), {}, size)),
    [`${SMALL} GETs of 1 KiB`]: async (bucket: string) => {
      await ok(upload(target.proxy, target.s3('PUT', 'small', bucket), {}, 1024))
      const path = target.s3('GET', 'small', bucket)
      for (let i = 0; i < SMALL; i++) await ok(download(target.proxy, path, {}, 1024))
    },
  }
  const age = await ageSeconds(size)
  for (const [name, run] of Object.entries(work)) {
    const costs = { plain: [] as Cost[], encrypted: [] as Cost[] }
    for (let round = 0; round <= rounds; round++)
      await inTurn(
        round,
        (['plain', 'encrypted'] as const).map((kind) => async () => {
          const cost = await measure(target, () => run(kinds[kind]))
          // The first round warms up.
          if (round > 0) costs[kind].push(cost)
        }),
      )
    const seconds = { plain: cpuOf(costs.plain), encrypted: cpuOf(costs.encrypted) }
    const more = ((seconds.encrypted - seconds.plain) * GIB) / size
    const inGib = name.includes('MiB') ? `   ${more.toFixed(2)} CPU s/GiB more; age takes ${age}` : ''
    console.log(
      `${name.padEnd(20)} CPU s: plain ${seconds.plain.toFixed(2)}   encrypted ${seconds.encrypted.toFixed(2)}   ratio ${(seconds.encrypted / seconds.plain).toFixed(2)}${inGib}`,
    )
  }
}

async function encryptedBucket({ proxy, owner, s3 }: Target): Promise<void> {
  const base = `http://${proxy.host}:${proxy.port}`
  const made = await fetch(`${base}${s3('PUT', '', BUCKET)}`, { method: 'PUT' })
  const target = `/${BUCKET}?encryption`
  const payloadHash = createHash('sha256').update(RULE).digest('hex')
  const { headers } = sign(owner, { method: 'PUT', target, payloadHash })
  const set = await fetch(`${base}${target}`, { method: 'PUT', headers, body: RULE })
  if (!made.ok || !set.ok) throw new Error(`the encrypted bucket was not made: ${await set.text()}`)
}

const cpuOf = (costs: readonly Cost[]): number => median(costs.map(({ cpu }) => cpu.process))

/** CPU seconds of `age` for a GiB that is piped into it; where it is absent, a text that says so. */
async function ageSeconds(size: number): Promise<string> {
  const script = `set -e; key=$(age-keygen 2> /dev/null | grep ^AGE); recipient=$(echo "$key" | age-keygen -y); TIMEFORMAT='%U %S'
    head -c ${size} /dev/zero | { time age -r "$recipient" > /dev/null; }`
  try {
    const { stderr } = await promisify(execFile)('bash', ['-c', script])
    const [user = 0, system = 0] = stderr.trim().split('\n').at(-1)?.split(' ').map(Number) ?? []
    return (((user + system) * GIB) / size).toFixed(2)
  } catch {
    return 'an unknown part: it is not installed'
  }
}
