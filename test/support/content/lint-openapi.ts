import { createConfig, lintFromString } from '@redocly/openapi-core'

/**
 * What the strict rules of Redocly's linter find wrong with an OpenAPI document, a sentence each:
 * https://redocly.com/docs/cli/rules/recommended#recommended-strict
 */
export async function lint(document: object): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended-strict'] })
  const problems = await lintFromString({ source: JSON.stringify(document), config })
  return problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} (${location[0]?.pointer})`)
}
