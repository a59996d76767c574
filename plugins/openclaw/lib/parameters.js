/**
 * The arguments of the tool, described for models. The binary checks them. It checks a document as
 * a whole, so this schema does not repeat the workflow language.
 */

const object = (description) => ({ type: "object", additionalProperties: true, description });

export const PARAMETERS = {
  type: "object",
  additionalProperties: false,
  required: ["action", "workflow"],
  properties: {
    action: { type: "string", enum: ["run"], description: "Always run" },
    workflow: object("The document: name, version, vars, env, steps. The same in every call"),
    vars: object("Variables over those of the document"),
    agentOutputs: object(
      "Your outputs, by requestId (or key, or step id) of the requests that asked for them",
    ),
    attempts: {
      type: "object",
      additionalProperties: { type: "integer", minimum: 1 },
      description: "The attempts of the last reply, as they were",
    },
    results: object("The results of the last reply, as they were: their steps are not run again"),
    runId: {
      type: "string",
      pattern: "^[A-Za-z0-9_-]+$",
      description:
        "A name of your choice: the run is recorded under it, and no step that is done is run again",
    },
    agentId: { type: "string", description: "Whose workspace; yours when it is absent" },
    ref: {
      type: "object",
      additionalProperties: false,
      properties: {
        schemaPaths: {
          type: "array",
          items: { type: "string" },
          description: "Folders of the workspace in which schemas are looked for by name",
        },
      },
    },
  },
};

export const DESCRIPTION = `Runs a Crayfish workflow: a JSON document of exec, agent, if, forEach and while steps. \
The tool calls no model: it runs programs, checks JSON against schemas, and asks you for the rest.

The reply has status "done", or status "needs_agent" with requests. For each request produce JSON that \
follows its prompt and is valid by its schema (fix retryContext.validationErrors first), then call again \
with the same workflow and vars, agentOutputs {requestId: output}, and the results and attempts of the reply. \
With a runId, results and attempts are kept for you, and a step that is done is never run again. \
A failure has ok false, an error code and a message.`;
