// Cohere's SDK: rerank of both versions.
import { CohereClient, CohereClientV2 } from "cohere-ai";
import { main } from "./main.mjs";

const DOCUMENTS = ["a river", "a weir"];

function surface(Client) {
  return (url, key) => {
    const client = new Client({ environment: url, token: key });
    return {
      async text(model) {
        const { results } = await client.rerank({ model, query: "weir", documents: DOCUMENTS });
        return DOCUMENTS[results[0].index];
      },
    };
  };
}

await main({ v1: surface(CohereClient), v2: surface(CohereClientV2) });
