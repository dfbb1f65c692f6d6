import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { newKeys } from '../../services/payment/payment-client.js'
import { bytes } from '../../support/content/content.js'
import { temporaryFolder } from '../../support/content/folders.js'
import { isInstalled, runAny } from '../../support/programs/run.js'
import { CLI } from '../../support/server/cli.js'
import { farFromMidnight } from '../../support/waiting.js'
import { link, startPayment, startPayProxy } from './scene.js'

t.test('what the content-addressed network has of an encrypted object opens with the keys', async (t) => {
  await farFromMidnight()
  const scene = await startPayment(t, 'a')
  const keys = newKeys()
  await scene.fund(keys)
  const data = temporaryFolder(t)
  const proxy = await startPayProxy(t, scene, { data })
  await link(proxy, keys)
  const content = bytes('letter', 700_001).toString('latin1')
  await proxy.send('PUT', '/photos')
  await proxy.send('POST', '/photos?x-deal-config=', { body: { PublicNetwork: 'encrypted-only' } })
  const headers = { 'x-amz-server-side-encryption': 'AES256' }
  await proxy.send('PUT', '/photos/letter', { body: content, headers })
  const { IpfsUrl } = await proxy.ask('POST', '/photos/letter?x-pay=', { DurationDays: 180 })
  const wanted = Buffer.from(content)

  const answer = await fetch(IpfsUrl)
  const file = join(temporaryFolder(t), 'letter.age')
  writeFileSync(file, Buffer.from(await answer.arrayBuffer()))
  const own = join(data, 'encryption.keys')
  if (isInstalled('age')) {
    const { stdout, stderr } = await runAny('age', ['-d', '-i', own, file])
    t.ok(stdout.equals(wanted), `the program age opens it: ${stderr}`)
  }
  const decrypt = (from: string) => runAny(process.execPath, [...CLI, 'decrypt', from, '--encryption-keys', own])
  for (const from of [file, IpfsUrl, `${IpfsUrl}?format=car`]) {
    const { code, stdout, stderr } = await decrypt(from)
    t.equal(code, 0, `${from}: ${stderr}`)
    t.ok(stdout.equals(wanted))
  }
})
