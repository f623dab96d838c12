"""A small network with everything a monitor could disturb, and a training of it."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

TOKENS, CHANNELS, WIDTH, HEADS = 17, 6, 8, 2


class Block(nn.Module):
    """Attention, batch normalisation (buffers), dropout (random states) and an attribute that every pass changes."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm, self.drop = nn.BatchNorm1d(WIDTH), nn.Dropout(0.2)
        self.passes = 0

    def forward(self, x):
        if not torch.compiler.is_compiling():  # a count that changes would be compiled anew each time
            self.passes += 1
        q, k, v = self.qkv(x).reshape(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = self.out(F.scaled_dot_product_attention(2 * q, k, v).transpose(1, 2).flatten(2))
        return x + self.drop(self.norm((x + mixed).mT).mT)


class Net(nn.Module):
    """`reentrant` is the kind of gradient checkpointing, None for none."""

    def __init__(self, depth=2, reentrant=None):
        super().__init__()
        self.embed, self.head = nn.Linear(CHANNELS, WIDTH), nn.Linear(WIDTH, 3)
        self.blocks = nn.ModuleList(Block() for _ in range(depth))
        self.reentrant = reentrant

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x) if self.reentrant is None else checkpoint(block, x, use_reentrant=self.reentrant)
        return self.head(x.mean(dim=1))


def network(seed=0, **more):
    torch.manual_seed(seed)
    return Net(**more)


def batch(size=5, seed=1):
    return torch.randn(size, TOKENS, CHANNELS, generator=torch.Generator().manual_seed(seed))


def train(model, steps, optimizer=None, size=4):
    """A few steps on random data from the global generator; returns the losses."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        inputs, targets = torch.randn(size, TOKENS, CHANNELS), torch.randint(3, (size,))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
