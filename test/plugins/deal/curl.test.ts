import t from 'tap'
import { findClient, run, runAny } from '../../support/programs/run.js'
import { inEachMode } from '../../support/server/dealgate.js'
import { farFromMidnight } from '../../support/waiting.js'

/** The calls as people type them, on `dealgate serve` as it comes. */
const path = await findClient(t, 'curl')
if (path) {
  inEachMode(t, async (t, server) => {
    await farFromMidnight()
    const signing = ['--aws-sigv4', `aws:amz:${server.region}:s3`, '--user', `${server.accessKey}:${server.secretKey}`]
    const curl = async (target: string, ...args: string[]) =>
      (await run(path, ['-sS', '--fail-with-body', ...signing, ...args, `${server.endpoint}${target}`])).toString()
    const refused = async (target: string, ...args: string[]) => {
      const { code, stdout } = await runAny(path, [
        '-sS',
        '--fail-with-body',
        ...signing,
        ...args,
        `${server.endpoint}${target}`,
      ])
      t.not(code, 0, target)
      return stdout.toString()
    }
    await curl('/photos', '-X', 'PUT')
    await curl('/photos/2021/a.zip', '-X', 'PUT', '--data-binary', 'some data')
    const object = '/photos/2021/a.zip?x-deal='
    const cids: string[] = []
    const made = (answer: string) => {
      const cid = /<DealCid>(\w+)<|"DealCid":"(\w+)"/.exec(answer)
      cids.push(cid?.[1] ?? cid?.[2] ?? '')
      return answer
    }

    t.match(
      made(await curl(object, '-d', '{"MinerId":"t01000","Price":"0.0000000000011","DurationEpochs":518400}')),
      '<DealResult xmlns="urn:dealgate:deal:1">',
    )
    const json = ['-H', 'content-type: application/json', '-d']
    t.match(
      JSON.parse(
        made(
          await curl(
            object,
            ...json,
            '{"MinerId":"t01000","Price":0.00000000000111,"DurationEpochs":518400,"FastRetrieval":false}',
          ),
        ),
      ),
      { Deal: { Price: '0.00000000000111', FastRetrieval: false } },
    )
    const xml =
      '<DealRequest xmlns="urn:dealgate:deal:1"><MinerId>t01000</MinerId><Price>0.00000000000112</Price><DurationEpochs>518400</DurationEpochs></DealRequest>'
    t.match(
      made(await curl(object, '-H', 'content-type: application/xml', '-d', xml)),
      '<Price>0.00000000000112</Price>',
    )
    const form = [
      '-d',
      'MinerId=t01000',
      '-d',
      'Price=0.00000000000113',
      '-d',
      'Duration=518400',
      '-d',
      'VerifiedDeal=false',
    ]
    t.match(made(await curl(object, ...form, '-d', 'FastRetrival=true')), '<FastRetrieval>true</FastRetrieval>')
    // As the gateway itself wants them.
    const own = (fast: string, price: string) =>
      `{"MinerId":"t01000","Price":"${price}","Duration":"518400","VerifiedDeal":"false","${fast}":"true"}`
    made(await curl(object, '-X', 'POST', '-d', own('FastRetrival', '0.00000000000114')))
    t.match(
      await curl('/photos?x-deal=', '-d', own('FastRetrieval', '0.00000000000115')),
      '<DealResult xmlns="urn:dealgate:deal:1"><Bucket>photos</Bucket><JobId>',
    )

    const list = await curl(object)
    t.same(
      [...list.matchAll(/<DealCid>(\w+)</g)].map(([, cid]) => cid),
      cids,
    )
    t.match(await curl('/photos?x-deal='), '<Price>0.00000000000115</Price>')
    t.match((await curl('/photos/2021/a.zip', '--head')).toLowerCase(), `x-amz-meta-deal-cid: ${cids.at(-1)}`)
    t.equal(JSON.parse(await curl('/-/deal/v1/deals')).Deals.length, 6)
    t.match(await curl('/photos?x-deal-quote=', '-X', 'POST'), '<DealQuote')
    t.match(await curl('/photos?x-deal-config=', '-d', '{"MaxSpendPerDay":"0.0000001"}'), '<MaxSpendPerDay>0.0000001</')
    t.match(await refused(object, '-d', own('FastRetrival', '0.0000000000012')), 'SpendCapReached')
    t.match(await refused(object, '-d', '{}'), 'DealTermsRequired')
    t.match(await refused(object, '-d', own('FastRetrival', '-1')), 'DealTermsInvalid')
    t.match(await refused('/photos/none?x-deal=', '-d', own('FastRetrival', '0.1')), 'NoSuchKey')
    const unsigned = await runAny(path, ['-sS', '-X', 'POST', '-d', '{}', `${server.endpoint}${object}`])
    t.match(unsigned.stdout.toString(), 'AccessDenied')
  })
}
