import { createHash } from 'node:crypto'
import t from 'tap'
import { steps as payment } from '../../src/services/payment/store.js'
import { steps as platform } from '../../src/services/platform/store.js'

/**
 * A database remembers how many steps it has taken, so that a changed step reaches none that exists. A new step appends
 * its hash; a changed hash is a mistake.
 */
const RELEASED = {
  payment: [
    '6f12cff83fb44328',
    '278093a87ee42282',
    '98c3d5d0811e41b7',
    'fca85e90b2099131',
    'aef53206dcd176d2',
    '9380e39ff90165cc',
    '765c2217aae3a22e',
    '83f9967043dcc74b',
    '06226233f3ade9f4',
    '073b5f873e1b2fa5',
    '94efdbb0fb74f52c',
    '54b70205dcf60d85',
    '1620b8ca276c29e7',
    '4cfd737963e619b6',
    'c074cf6d73a9875c',
  ],
  platform: [
    '308385391aeecd9c',
    'ead742f4a3640d04',
    'c8f3f17a67906aa4',
    'd50317138998a3f7',
    'f40724a6151b49bf',
    '86342b234c328339',
    'c4755ad6dc0a18d5',
  ],
}

const hashOf = (step: string) =>
  createHash('sha256').update(step.replaceAll(/\s+/g, ' ').trim()).digest('hex').slice(0, 16)

t.test('released steps of the schemas do not change', async (t) => {
  t.same(payment.map(hashOf), RELEASED.payment, 'the storage payment service')
  t.same(platform.map(hashOf), RELEASED.platform, 'the task platform')
  const [first = ''] = payment
  t.not(hashOf(first.replace('TEXT', 'INTEGER')), hashOf(first))
})
