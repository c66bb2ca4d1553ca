#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
GPUS_PER_NODE=8
NNODES=4
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))
GPT_MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096
    --num-attention-heads 32
    --group-query-attention --num-query-groups 8
    --ffn-hidden-size 14336
    --seq-length 4096
    --max-position-embeddings 4096
    --swiglu --normalization RMSNorm --position-embedding-type rope
    --untie-embeddings-and-output-weights --disable-bias-linear
)
TRAINING_ARGS="
    --micro-batch-size 1 --global-batch-size 256
    --lr 1e-4 --bf16 --use-distributed-optimizer"
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py ${GPT_MODEL_ARGS[@]} $TRAINING_ARGS --vocab-size 128256 --tensor-model-parallel-size 1
