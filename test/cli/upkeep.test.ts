import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { temporaryFolder } from '../support/content/folders.js'
import { runCli } from '../support/server/cli.js'
import { startDealgate } from '../support/server/dealgate.js'
import { send } from '../support/sign/send.js'
import { until } from '../support/waiting.js'

// The metrics have what an operator must not forget: backups, and notifications that are not accepted.

t.test('the metrics of a server have its last backup and the notifications that wait', async (t) => {
  const server = await startDealgate(t, { args: ['--metrics-port', '0', '--webhook', 'gone=http://127.0.0.1:1/'] })
  const metric = async (name: string) => {
    const text = await (await fetch(server.metrics)).text()
    return new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1]
  }
  await t.test('the time of a backup, which is in no backup', async (t) => {
    const name = 'dealgate_last_backup_timestamp_seconds'
    t.equal(await metric(name), undefined)
    const { code, stdout } = await runCli(['backup', temporaryFolder(t), '--data', server.data, '--print', 'json'])
    t.equal(code, 0)
    const { backup, taken } = JSON.parse(stdout)
    t.equal(Number(await metric(name)) * 1000, Date.parse(taken))
    const { body } = await send(server, { method: 'GET', target: '/-/upkeep/v1?format=json' })
    t.same(JSON.parse(String(body)), { LastBackup: new Date(taken).toISOString(), Certificates: [] })
    t.ok(existsSync(join(server.data, 'last-backup.json')))
    const second = await runCli(['backup', temporaryFolder(t), '--data', server.data, '--print', 'json'])
    const restored = join(temporaryFolder(t), 'restored')
    for (const [from, to] of [
      [backup, `${restored}-1`],
      [JSON.parse(second.stdout).backup, `${restored}-2`],
    ]) {
      const restore = await runCli(['restore', from, '--data', to])
      t.equal(restore.code, 0, restore.stderr)
      t.ok(existsSync(join(to, 'keys.json')), 'what is restored is whole')
      t.notOk(existsSync(join(to, 'last-backup.json')), 'and has no backup yet')
    }
  })
  await t.test('notifications that a webhook has not accepted', async (t) => {
    const rule = '<Queue>arn:dealgate:webhook:::gone</Queue><Event>s3:ObjectCreated:*</Event>'
    const body = `<NotificationConfiguration><QueueConfiguration>${rule}</QueueConfiguration></NotificationConfiguration>`
    const headers = { 'x-amz-skip-destination-validation': 'true' }
    t.equal((await send(server, { method: 'PUT', target: '/bucket' })).status, 200)
    const put = await send(server, { method: 'PUT', target: '/bucket?notification=', headers, body: Buffer.from(body) })
    t.equal(put.status, 200, put.body.toString())
    for (const key of ['a', 'b'])
      await send(server, { method: 'PUT', target: `/bucket/${key}`, body: Buffer.from(key) })
    // The server shows such values again for ten seconds.
    await until('both wait', async () => (await metric('dealgate_notifications_waiting{webhook="gone"}')) === '2')
    const age = Number(await metric('dealgate_notifications_oldest_age_seconds{webhook="gone"}'))
    t.ok(age >= 0 && age < 600, `${age} seconds`)
  })
})
