import t from 'tap'
import { requireAction } from '../../../src/access/rights.js'

t.test('an action of a key pair is a name, or a prefix of names', async (t) => {
  const allows = (actions: readonly string[], name: string) => {
    try {
      requireAction(actions, name)
      return true
    } catch {
      return false
    }
  }
  for (const [actions, name, allowed] of [
    [['deal:GetDeal'], 'deal:GetDeal', true],
    [['deal:GetDeal'], 'deal:GetDeals', false],
    [['deal:GetDeals'], 'deal:GetDeal', false],
    [['deal:Get*'], 'deal:GetDeal', true],
    [['deal:Get*'], 'deal:CreateObjectDeal', false],
    [['deal:*'], 'pay:GetDeal', false],
    [['pay:*', 'deal:*'], 'deal:GetDeal', true],
    [['*'], 'task:CreateTask', true],
    [[], 'deal:GetDeal', false],
  ] as const)
    t.equal(allows(actions, name), allowed, `${actions.join(', ')}: ${name}`)
  t.throws(() => requireAction([], 'deal:GetDeal'), { code: 'AccessDenied', message: /deal:GetDeal/ })
})
