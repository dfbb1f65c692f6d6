import { testPlugin } from 'dealgate/testing'
import t from 'tap'
import deal from '../../../plugins/deal/index.js'

t.test('deal keeps the contract of plugins, as a stranger’s does', (t) => testPlugin(t, deal))
