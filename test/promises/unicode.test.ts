import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { hasLoneSurrogate } from '../../common/json.js'
import { KeyCommand } from '../../src/objects/encryption/key-command.js'
import { temporaryFolder } from '../support/content/folders.js'
import { startInProcess } from '../support/server/in-process.js'
import { keptLog } from '../support/server/kept-log.js'
import { signedRequest } from '../support/sign/signed-request.js'

const owner = { accessKeyId: 'owner-key', secretAccessKey: 'secret-of-the-owner' }

t.test('halves of surrogate pairs are found', async (t) => {
  for (const json of [
    '"\\ud800"',
    '{"\\uDFFF":1}',
    '"\\udc00\\ud800"',
    '"\\\\\\ud800x"',
    '"\\ud83d\\u00e9"',
    '["\\ud83d\\n"]',
  ])
    t.ok(hasLoneSurrogate(json), json)
  for (const json of ['"\\ud83d\\ude00"', '"\\\\ud800"', '"😀"', '"\\u00e9\\ud7ff\\ue000"', '"\\\\\\\\ud800"'])
    t.notOk(hasLoneSurrogate(json), json)
  for (const json of ['"\\ud800"', '"\\ud83d\\ude00\\ude00"', '"\\\\\\ud800"'])
    t.equal(hasLoneSurrogate(json), !(JSON.parse(json) as string).isWellFormed(), json)
})

t.test('JSON with one is refused at each door', async (t) => {
  const { endpoint, gateway } = await startInProcess(t, 'full', { identities: [owner] })
  const ask = async (method: string, path: string, query: Record<string, string>, body: string) => {
    const headers = { 'content-type': 'application/json' }
    const { status, code } = await signedRequest(endpoint, owner, { method, path, query, body, headers })
    return `${status} ${code}`
  }
  t.equal((await signedRequest(endpoint, owner, { method: 'PUT', path: '/box' })).status, 200)
  const statement = { Effect: 'Allow', Principal: '*', Action: 's3:GetObject', Resource: 'arn:aws:s3:::box/SID*' }
  const policy = JSON.stringify({ Version: '2012-10-17', Statement: [statement] })
  t.equal(await ask('PUT', '/box', { policy: '' }, policy.replace('SID', '\\ud800')), '400 MalformedPolicy')
  t.equal(await ask('PUT', '/box', { policy: '' }, policy.replace('SID', '\\ud83d\\ude00')), '204 ')
  t.match(await ask('PUT', '/-/keys/v1', {}, '{"Description":"\\ud800"}'), /^40/)
  const call = { id: 1, jsonrpc: '2.0', method: 'web.Login', params: { username: 'NAME', password: 'x' } }
  const answer = await fetch(`${gateway.url}/gateway/webrpc`, {
    ...{ method: 'POST', headers: { 'content-type': 'application/json', 'user-agent': 'Mozilla/5.0' } },
    body: JSON.stringify(call).replace('NAME', '\\ud800'),
  })
  t.match(await answer.text(), /no Unicode character/)
})

t.test('no name of a key is a path that leaves its folder', async (t) => {
  const folder = temporaryFolder(t)
  const [program, asked] = [join(folder, 'vault'), join(folder, 'asked')]
  await writeFile(program, `#!/bin/sh\necho "$1" >> ${asked}\n`, { mode: 0o700 })
  const { endpoint } = await startInProcess(t, 'full', { identities: [owner], encryptionCommand: program })
  t.equal((await signedRequest(endpoint, owner, { method: 'PUT', path: '/box' })).status, 200)
  for (const name of ['a/../../x', 'a/..', 'a/./b', 'arn:aws:kms:us-east-1:1:key/../x']) {
    const headers = { 'x-amz-server-side-encryption': 'aws:kms', 'x-amz-server-side-encryption-aws-kms-key-id': name }
    const wanted = { method: 'PUT', path: '/box/k', body: 'x', headers }
    const { status, body: answer } = await signedRequest(endpoint, owner, wanted)
    t.equal(status, 400, name)
    t.match(answer, /<Code>KMS.NotFoundException</, name)
    t.equal(await new KeyCommand(program, keptLog().log).find(name), undefined, name)
  }
  t.notOk(existsSync(asked), 'the program is not asked')
  await new KeyCommand(program, keptLog().log).find('arn:aws:kms:us-east-1:1:key/a..b')
  t.ok(existsSync(asked))
})
