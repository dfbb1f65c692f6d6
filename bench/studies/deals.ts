import { createCipheriv, createHash } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { Dealgate } from '../../test/support/server/dealgate.js'
import { send, sign, targetOf, UNSIGNED_PAYLOAD } from '../../test/support/sign/send.js'

const MIB = 1024 * 1024
const BUCKET = 'backup'
/** Epochs go by fast, so that the deal becomes active while the study waits. */
const EPOCH_SECONDS = '0.01'
const LARGE_FILES = 24
const SMALL_FILES = 2000
const SMALL_BYTES = 10_000
const POLL_MS = 2000

interface Job {
  readonly JobId: string
  readonly Status: string
  readonly Phase?: string
  readonly ProgressSummary: {
    readonly TotalNumberOfTasks: number
    readonly NumberOfTasksSucceeded: number
    readonly Bytes: { readonly Done: number; readonly Total: number }
  }
  readonly Result?: { readonly Deal?: { readonly DealCid: string } }
}

/**
 * A bucket of nested folders is backed up as one deal, loses every local copy, and is retrieved: with the time of each
 * step, and the highest resident set of the whole process.
 */
export async function deals(size: number): Promise<void> {
  const data = await mkdtemp(join(tmpdir(), 'dealgate-bench-deals-'))
  const server = new Dealgate(data, { args: ['--network-epoch-seconds', EPOCH_SECONDS, '--access-log', 'off'] })
  await server.start()
  try {
    await run(server, size)
  } finally {
    await server.stop()
    await rm(data, { recursive: true, force: true })
  }
}

async function run(server: Dealgate, size: number): Promise<void> {
  const files = filesOf(size)
  await must(send(server, { method: 'PUT', target: `/${BUCKET}` }))
  const step = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    const start = performance.now()
    const result = await work()
    const seconds = (performance.now() - start) / 1000
    console.log(
      `${what.padEnd(34)} ${seconds.toFixed(1).padStart(7)} s  ${(size / MIB / seconds).toFixed(0).padStart(5)} MiB/s  peak RSS ${Math.round((await peakRss(server)) / MIB)} MiB`,
    )
    return result
  }

  await step(`${files.size} files, ${Math.round(size / MIB)} MiB, uploaded`, async () => {
    for (const [key, bytes] of files) await put(server, key, bytes)
  })
  const job = await step('one deal of the bucket', async () => {
    // Enough for 16 GiB, and more than is asked for less.
    const price = { Price: '0.000008', ConfirmPrice: true }
    const terms = { MinerId: 't01000', ...price, DurationEpochs: 518400, VerifiedDeal: false, FastRetrieval: true }
    return followed(server, await ask(server, 'POST', `/${BUCKET}?format=json&x-deal=`, terms))
  })
  const dealCid = job.Result?.Deal?.DealCid
  await untilActive(server, String(dealCid))
  await step('compared with a retrieval, given up', async () => {
    const bearer = await login(server)
    for (const key of files.keys()) await evict(server, bearer, key)
  })
  await step('brought back', async () =>
    followed(server, await ask(server, 'POST', `/${BUCKET}?format=json&x-deal-retrieve=`, { Days: 1 })),
  )
  await step('read, and as it was', async () => {
    for (const [key, bytes] of files) await compare(server, key, bytes)
  })
}

/** Keys and sizes: a few large files and many small ones, in folders within folders. */
function filesOf(size: number): Map<string, number> {
  const large = Math.floor((size - SMALL_FILES * SMALL_BYTES) / LARGE_FILES)
  const files = new Map<string, number>()
  for (let i = 0; i < LARGE_FILES; i++) files.set(`disks/${i % 4}/image ${i}/disk.img`, large)
  for (let i = 0; i < SMALL_FILES; i++) files.set(`notes/${i % 10}/${i % 100}/note-${i}.txt`, SMALL_BYTES)
  return files
}

/** The same bytes for the same key, in pieces of at most 1 MiB. */
function* contentOf(key: string, size: number): Generator<Buffer> {
  const cipher = createCipheriv('aes-128-ctr', createHash('md5').update(key).digest(), Buffer.alloc(16))
  for (let at = 0; at < size; at += MIB) yield cipher.update(Buffer.alloc(Math.min(MIB, size - at)))
}

function put(server: Dealgate, key: string, size: number): Promise<void> {
  const target = targetOf(BUCKET, key)
  const { headers } = sign(server, { method: 'PUT', target, payloadHash: UNSIGNED_PAYLOAD })
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      `${server.endpoint}${target}`,
      { method: 'PUT', headers: { ...headers, 'content-length': size } },
      (answer) => {
        answer.resume()
        answer.on('end', () => (answer.statusCode === 200 ? resolve() : reject(new Error(`PUT ${answer.statusCode}`))))
      },
    )
    request.on('error', reject)
    Readable.from(contentOf(key, size)).pipe(request)
  })
}

function compare(server: Dealgate, key: string, size: number): Promise<void> {
  const wanted = createHash('sha1')
  for (const chunk of contentOf(key, size)) wanted.update(chunk)
  const target = targetOf(BUCKET, key)
  const { headers } = sign(server, { method: 'GET', target })
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${server.endpoint}${target}`, { headers }, (answer) => {
      const got = createHash('sha1')
      answer.on('data', (chunk) => got.update(chunk))
      answer.on('error', reject)
      answer.on('end', () => {
        const same = answer.statusCode === 200 && got.digest('hex') === wanted.digest('hex')
        if (same) resolve()
        else reject(new Error(`${key} came back as something else (${answer.statusCode})`))
      })
    })
    request.on('error', reject).end()
  })
}

async function ask<T = Job>(server: Dealgate, method: string, target: string, document?: object): Promise<T> {
  const body = document && Buffer.from(JSON.stringify(document))
  const headers = { prefer: 'wait=0', ...(body && { 'content-type': 'application/json' }) }
  const answer = await must(send(server, { method, target, body, headers }))
  return JSON.parse(answer.body.toString()) as T
}

/** Shows the job until it has ended. */
async function followed(server: Dealgate, { JobId }: Job): Promise<Job> {
  for (let shown = ''; ; await sleep(POLL_MS)) {
    const job = await ask(server, 'GET', `/-/jobs/v1/${JobId}`)
    const { Bytes, TotalNumberOfTasks: total, NumberOfTasksSucceeded: done } = job.ProgressSummary
    const now = `  ${job.Status} ${job.Phase ?? ''}: ${Math.round(Bytes.Done / MIB)} of ${Math.round(Bytes.Total / MIB)} MiB, ${done} of ${total}`
    if (now !== shown) console.log(now)
    shown = now
    if (job.Status === 'Complete') return job
    if (!['New', 'Active'].includes(job.Status)) throw new Error(`the job ended: ${JSON.stringify(job)}`)
  }
}

async function untilActive(server: Dealgate, dealCid: string): Promise<void> {
  for (;;) {
    const { Status } = await ask<{ Status: string }>(server, 'GET', `/-/deal/v1/deals/${dealCid}`)
    if (/Active$/.test(Status)) return
    if (/Error$|Expired$/.test(Status)) throw new Error(`the deal is ${Status}`)
    await sleep(POLL_MS)
  }
}

async function login(server: Dealgate): Promise<string> {
  const { accessKey, secretKey } = JSON.parse(
    await readFile(join(server.data, 'services', 'gateway', 'account.json'), 'utf8'),
  )
  const reply = await fetch(`${server.gateway}/gateway/webrpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      id: '1',
      jsonrpc: '2.0',
      method: 'web.Login',
      params: { username: accessKey, password: secretKey },
    }),
  })
  return ((await reply.json()) as { result: { token: string } }).result.token
}

/** At the gateway itself: the proxy gives up local copies in its own time. */
async function evict(server: Dealgate, bearer: string, key: string): Promise<void> {
  const path = targetOf(BUCKET, key)
  const authorization = { authorization: `Bearer ${bearer}` }
  const head = await fetch(`${server.gateway}/gateway/download${path}?token=${bearer}`, { method: 'HEAD' })
  const answer = await fetch(`${server.gateway}/gateway/evict${path}`, {
    method: 'POST',
    headers: { ...authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ Generation: head.headers.get('x-cloud-generation') }),
  })
  if (!answer.ok) throw new Error(`${key} was not given up: ${answer.status} ${await answer.text()}`)
}

async function must(answer: ReturnType<typeof send>): ReturnType<typeof send> {
  const { status, body } = await answer
  if (status >= 300) throw new Error(`${status} ${body.toString().slice(0, 500)}`)
  return answer
}

async function peakRss(server: Dealgate): Promise<number> {
  const status = await readFile(`/proc/${server.pid}/status`, 'utf8')
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024
}
