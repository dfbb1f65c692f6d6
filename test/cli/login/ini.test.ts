import t from 'tap'
import { changeSection, readSection } from '../../../src/cli/aws-profile.js'

const FILE = `# mine
[default]
aws_access_key_id = AKIA
s3 =
  max_concurrent_requests = 20

; about the other
[ profile "other" ]
region=eu-west-1   
endpoint_url: http://x
# the end of other

[profile third]
region = x
`

t.test('changes members of one section, and nothing else', async (t) => {
  const changed = changeSection(FILE, 'profile other', { region: 'us-east-1', added: '1', endpoint_url: undefined })
  t.equal(changed, FILE.replace('region=eu-west-1   \nendpoint_url: http://x\n', 'region = us-east-1\nadded = 1\n'))
  t.equal(changeSection(FILE, 'default', { s3: undefined }), FILE.replace('s3 =\n  max_concurrent_requests = 20\n', ''))
  t.equal(changeSection(FILE, 'default', {}), FILE)
  t.equal(changeSection(FILE, 'new', { a: 'b' }), `${FILE}\n[new]\na = b\n`)
  t.equal(changeSection('', 'new', { a: 'b', c: undefined }), '[new]\na = b\n')
  t.equal(changeSection('[a]', 'a', { b: 'c' }), '[a]\nb = c\n')
  t.equal(changeSection('[a]\r\nb = 1\r\n', 'a', { b: '2', c: '3' }), '[a]\r\nb = 2\r\nc = 3\r\n')
  t.equal(changeSection('[a]\nb = 1\nb = 2\n', 'a', { b: '3' }), '[a]\nb = 3\n', 'once')
})

t.test('reads a section', async (t) => {
  t.same(
    readSection(FILE, 'profile other'),
    new Map([
      ['region', 'eu-west-1'],
      ['endpoint_url', 'http://x'],
    ]),
  )
  t.equal(readSection(FILE, 'other'), undefined)
})
