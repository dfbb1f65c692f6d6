import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import pg from 'pg'
import t, { type Test } from 'tap'
import { until } from '../../support/waiting.js'
import { emptyDatabase, onPostgres } from '../engine.js'
import { type ServiceProcess, startProcess } from '../processes.js'
import { CAR, carServer, csvOfUrls } from './daemon/daemon-scene.js'
import type { Answer } from './platform-client.js'
import { mailServer } from './tasks/mail-server.js'
import { CSV, csvOf, formOf, PRIVATE } from './tasks/task-scene.js'

/** Two processes over one database, and a token of the first user. */
async function startTwo(t: Test, options: Readonly<Record<string, unknown>>) {
  const database = await emptyDatabase()
  const start = (more = {}) => startProcess(t, 'platform', { database, ...options, ...more })
  const first = await start()
  const second = await start()
  t.equal(second.made, undefined, 'the first user is made once')
  const { json } = await first.call('POST', '/auth/login', { body: { ...first.made } })
  return { database, start, first, second, token: json.auth_token as string }
}

const skip = onPostgres ? false : 'on PostgreSQL'

function uuidOf({ status, json }: Answer): string {
  if (status !== 200) throw new Error(`POST /tasks was answered with ${status}: ${json.message}`)
  return json.data.uuid
}

t.test('what one process does, the other knows', { skip }, async (t) => {
  const { first, second, token, database, start } = await startTwo(t, { daemon: 'external' })
  const key = await second.call('POST', '/user/api_keys/jwt', { body: { key_name: 'a' }, token })
  t.equal(key.status, 200, 'a sign-in counts at both')
  const { jwt, apikey } = key.json.auth_token
  t.equal((await first.call('GET', '/tasks', { token: jwt })).status, 200, 'an API key counts at both')
  const post = async ({ call }: ServiceProcess, uuid: string) =>
    call('POST', '/tasks', {
      token,
      body: formOf(PRIVATE, csvOf(40).replaceAll('\n', `,${uuid}\n`).replace(uuid, 'uuid')),
    })
  for (const uuid of ['0a0d5a2e-6a3c-4c8e-9d7e-2f1b6c4d8e01', '0a0d5a2e-6a3c-4c8e-9d7e-2f1b6c4d8e02']) {
    const answers = await Promise.all([first, second, first, second].map((one) => post(one, uuid)))
    t.same(new Set(answers.map(uuidOf)), new Set([uuid]), 'a task is posted once')
  }
  const shown = await second.call('GET', '/tasks', { token })
  t.equal(shown.json.data.task.length, 2)
  await first.call('POST', '/user/api_keys/revoke', { body: { apikey }, token })
  t.equal((await second.call('GET', '/tasks', { token: jwt })).status, 401, 'a key that is revoked is so at both')

  const client = await connected(t, database)
  await client.query('UPDATE tasks SET posted = 0')
  await client.query("UPDATE tasks SET created = created - 7200 WHERE uuid LIKE '%1'")
  await start()
  const left = async () => (await client.query('SELECT uuid FROM tasks')).rows.map(({ uuid }) => uuid.at(-1)).join()
  await until('a start removes an old draft', async () => (await left()) === '2')
  await new Promise(setImmediate)
  t.equal(await left(), '2', 'but not one that another process may work on')
})

t.test('another process goes on with mails and CARs, and does nothing twice', { skip }, async (t) => {
  const { url: smtp, mails } = await mailServer(t)
  const asked: ServerResponse[] = []
  const url = await carServer(t, (_, response) => {
    asked.push(response)
    response.writeHead(200, { 'content-length': CAR.length })
    response.write(CAR.subarray(0, -1))
  })
  const options = { cars: { networks: ['127.0.0.1'] }, mail: { smtp } }
  const { database, first, second, start, token } = await startTwo(t, options)
  const client = await connected(t, database)
  const names: string[] = []
  const post = async ({ call }: ServiceProcess, csv = CSV): Promise<string> => {
    const name = `task-${names.length}`
    names.push(name)
    return uuidOf(await call('POST', '/tasks', { token, body: formOf({ ...PRIVATE, task_name: name }, csv) }))
  }
  // A mail is sent again when its process dies before it has written so.
  const areSent = () =>
    until(`${names.length} mails are sent`, async () => {
      const { rowCount } = await client.query("SELECT 1 FROM mails WHERE state = 'sent'")
      return rowCount === names.length
    })
  const deal = async ({ call }: ServiceProcess, uuid: string) =>
    (await call('GET', `/tasks/${uuid}`, { token })).json.data.deal[0]
  /** Answers all requests but the first. A busy machine may lose a lease, so that a fetch is begun once more. */
  const isFetched = (one: ServiceProcess, uuid: string) =>
    until('the CAR is fetched', async () => {
      for (const answer of asked.slice(1)) if (!answer.writableEnded) answer.end(CAR.subarray(-1))
      return (await deal(one, uuid)).status === 'Downloaded'
    })

  await post(first)
  const uuid = await post(second, csvOfUrls(url))
  await until('the first fetches', () => asked.length === 1)
  await areSent()
  first.freeze()
  await post(second)
  await until('the second fetches', () => asked.length > 1)
  await isFetched(second, uuid)
  await areSent()
  const late = once(asked[0] as ServerResponse, 'close')
  asked[0]?.end(CAR.subarray(-1))
  first.goOn()
  await late
  await Promise.all([post(first), post(second)])
  await areSent()
  t.match(await deal(first, uuid), { status: 'Downloaded', note: '' }, 'the former changes nothing')

  const fetches = asked.length
  const next = await post(first, csvOfUrls(url))
  await until('the next is fetched', () => asked.length > fetches)
  await areSent()
  await second.kill()
  await Promise.all([post(first), post(await start())])
  await isFetched(first, next)
  await areSent()
  t.same(mails.map((mail) => /^Subject: Task (\S+)/m.exec(mail)?.[1]).sort(), names.sort(), 'each mail is sent once')
})

async function connected(t: Test, database: string | undefined): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database, options: '-c search_path=dealgate_platform' })
  await client.connect()
  t.teardown(() => client.end())
  return client
}
